"""Whatever writes C: names, literals, expressions, functions."""
