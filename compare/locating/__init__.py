"""Where two modes part: the node, the pass, the rule, the line."""
