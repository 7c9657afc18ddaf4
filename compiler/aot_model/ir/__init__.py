"""The compiler's own representation: a Graph of typed values, expressions, and the Program that is
emitted.
"""
