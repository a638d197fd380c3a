"""The functions of `torch.nn.functional`, a family a file."""
