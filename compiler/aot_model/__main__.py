"""`python -m aot_model`; also `python <folder of this file>`, which needs no installation and no PYTHONPATH.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
if sys.path and os.path.abspath(sys.path[0]) == _HERE:
    sys.path[0] = os.path.dirname(_HERE)

from aot_model.cli import main  # noqa: E402  # after the path is known

sys.exit(main())
