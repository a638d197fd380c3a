"""As `torch.fx.experimental`."""
