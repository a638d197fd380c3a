"""`python -m compare`: see `python -m compare --help`."""

from __future__ import annotations

import sys

from compare.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
