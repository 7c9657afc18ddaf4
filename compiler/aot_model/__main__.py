"""`python -m aot_model`; also `python <folder of this file>`, which needs no installation and no PYTHONPATH,
and the main program of a py_binary.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
if not __package__:
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(_HERE):
        del sys.path[0]  # Python's own doing, unless it is told otherwise
    sys.path.insert(0, os.path.dirname(_HERE))

from aot_model.cli import main  # noqa: E402  # after the path is known

sys.exit(main())
