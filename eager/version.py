"""`torch.version`: which PyTorch's API this is."""

__version__ = "2.13.0+eager"  # programs compare it with versions of PyTorch
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
