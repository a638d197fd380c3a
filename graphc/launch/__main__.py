"""`python -m graphc.launch`: see `graphc.launch.options`."""

import sys

from graphc.launch.options import main

if __name__ == "__main__":
    sys.exit(main())
