"""Integer kernels: int8 activations and weights, int32 accumulators, requantised to int8."""
