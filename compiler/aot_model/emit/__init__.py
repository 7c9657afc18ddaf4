"""From a Program and its MemoryPlan to files: C source, header, metadata, depfile, report."""
