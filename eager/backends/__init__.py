"""`torch.backends`: what a build has been compiled with. None of it here; the switches can be set."""

from types import SimpleNamespace

from eager.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized", "xnnpack"]

quantized = SimpleNamespace(engine="none", supported_engines=["none"])
xnnpack = SimpleNamespace(enabled=False)
