"""PyTorch's functions, written in the op language `E`, one subject a file."""
