"""As `torch.distributed.elastic.utils`."""
