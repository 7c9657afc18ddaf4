"""From a Graph to a Program: what is stored and what is fused, loops for expressions, kernels for heavy
operators.
"""
