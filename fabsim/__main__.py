"""`python -m fabsim`: the command line."""

import sys

from fabsim.cli import main

sys.exit(main())
