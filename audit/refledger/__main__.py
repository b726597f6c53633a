"""`python -m refledger`: the command line."""

import sys

from refledger.cli import main

sys.exit(main())
