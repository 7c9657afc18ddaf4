"""Operators, a file for each family. See registry.py for what an operator is."""
