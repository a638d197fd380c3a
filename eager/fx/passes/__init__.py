"""As `torch.fx.passes`."""
