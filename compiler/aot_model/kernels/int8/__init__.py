"""Integer kernels (int8/uint8 activations, int8 weights): convolution, depthwise, fully connected,
pooling.
"""
