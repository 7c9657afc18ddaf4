"""From a float model to one with QuantizeLinear and DequantizeLinear (QDQ), scored with the integers of the
target."""
