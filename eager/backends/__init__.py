"""`torch.backends`: what a build has been compiled with. None of it here; the switches can be set."""

from eager.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp
from eager.core.missing import explain

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
explain(__name__)
