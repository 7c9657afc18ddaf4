"""`python -m aot_model` is the command line."""

import sys

from aot_model.cli import main

sys.exit(main())
