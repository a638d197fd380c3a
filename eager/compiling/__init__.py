"""`torch.compile` and the older `torch.jit`, by `graphc.compile`."""
