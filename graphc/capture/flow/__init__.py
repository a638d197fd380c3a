"""Control flow as functions: `cond`, `switch`, `while_loop`, `scan`, `fori_loop`, `map`."""
