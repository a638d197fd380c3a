"""The exit codes of `graphc`."""

FINE, REFUSED, WRONG = 0, 1, 2  # done; not so; wrong arguments, as argparse has it
