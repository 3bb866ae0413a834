"""``python -m ldpopt`` is the command ``ldpopt``."""

import sys

from ldpopt.cli import main

if __name__ == "__main__":
    sys.exit(main())
