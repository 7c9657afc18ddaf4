"""Cycles of a Cortex-M, estimated from a run in QEMU: instructions decoded, a core's rules, counts of
executed blocks.
"""
