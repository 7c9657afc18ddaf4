"""Targets: what a processor (or a library, or an accelerator) can do, and what it wants from the compiler."""
