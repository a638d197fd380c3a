"""Programs written for PyTorch run unchanged: `torch` means `eager` while they run."""
