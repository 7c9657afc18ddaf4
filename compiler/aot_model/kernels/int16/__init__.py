"""Kernels for integers whose products are taken two at a time, as pairs of int16."""
