"""Float32 kernels: convolution, matrix products, pooling, for plain C and the vector instruction sets of
`dialect`.
"""
