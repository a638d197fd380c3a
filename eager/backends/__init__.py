"""`torch.backends`: what a build has been compiled with. None of it here; the switches can be set."""

from eager.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp
from graphc.lazy import listing

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
__dir__ = listing(__name__)
