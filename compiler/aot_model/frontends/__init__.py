"""Frontends: one module for each file format, the only places that know the format."""
