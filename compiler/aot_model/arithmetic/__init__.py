"""Numbers as the generated code computes them."""
