# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""Fourier transforms. As `torch.fft`: each is a composition of three ops, graphc/ops/fft.py."""

from collections.abc import Sequence
from eager.core.dtypes import dtype
from eager.core.layouts import layout
from eager.core.tensor import Tensor
from eager.types import Device

def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along `dim`, of `n` numbers. As `torch.fft.fft`. RuntimeError for n < 1."""

def fft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fftn` along two dims. As `torch.fft.fft2`."""

def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of `fft` of `n` samples, `d` apart. As `torch.fft.fftfreq`."""

def fftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along `dim`, all dims by default. As `torch.fft.fftn`."""

def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The zero frequency moved to the middle of `dim`, of all dims by default. As `torch.fft.fftshift`."""

def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The real transform of half of a Hermitian signal along `dim`, of `n` numbers. As `torch.fft.hfft`. RuntimeError for n < 1."""

def hfft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`hfftn` along two dims. As `torch.fft.hfft2`."""

def hfftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The real transform of half of a Hermitian signal along `dim`, all dims by default. As `torch.fft.hfftn`."""

def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fft` along `dim`, of `n` numbers. As `torch.fft.ifft`. RuntimeError for n < 1."""

def ifft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`ifftn` along two dims. As `torch.fft.ifft2`."""

def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fftn` along `dim`, all dims by default. As `torch.fft.ifftn`."""

def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`. As `torch.fft.ifftshift`."""

def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfft` along `dim`, of `n` numbers. As `torch.fft.ihfft`. RuntimeError for n < 1."""

def ihfft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`ihfftn` along two dims. As `torch.fft.ihfft2`."""

def ihfftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfftn` along `dim`, all dims by default. As `torch.fft.ihfftn`."""

def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfft` along `dim`, of `n` numbers. As `torch.fft.irfft`. RuntimeError for n < 1."""

def irfft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`irfftn` along two dims. As `torch.fft.irfft2`."""

def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfftn` along `dim`, all dims by default. As `torch.fft.irfftn`."""

def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first half of the transform of real numbers along `dim`, of `n` numbers. As `torch.fft.rfft`. RuntimeError for n < 1."""

def rfft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`rfftn` along two dims. As `torch.fft.rfft2`."""

def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of `rfft` of `n` samples, `d` apart. As `torch.fft.rfftfreq`."""

def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The transform of real numbers, half of the last dim, along `dim`, all dims by default. As `torch.fft.rfftn`."""
