"""PyTorch's functions, written in the op language `E`, one subject a file."""

from eager.core.missing import explain

explain(__name__)
