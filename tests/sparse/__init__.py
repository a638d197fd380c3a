"""Sparse tensors: against dense ones, against PyTorch, against SciPy, in both modes."""
