"""Modules that are computed again for their gradients. As `torch.distributed.algorithms._checkpoint`."""
