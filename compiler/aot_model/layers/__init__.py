"""The tensors of a model as the generated program computes them, beside those of a reference
implementation.
"""
