"""aot-model: compiles a trained network ahead of time into a plain C static library."""

__version__ = "0.1.0"
