"""As `torch.fx.passes.utils`."""
