"""The matrix of compilers and flags: columns (compilers), groups (programs), cells (a program built and run),
results.
"""
