"""`torch.backends.cuda` without CUDA: its switches change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from eager.backends.switches import switch

matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True,
    fp32_precision="none",
)  # fmt: skip
enable_flash_sdp, flash_sdp_enabled = switch(True)
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = switch(True)
enable_math_sdp, math_sdp_enabled = switch(True)
enable_cudnn_sdp, cudnn_sdp_enabled = switch(True)
_KERNELS = {
    "enable_flash": (enable_flash_sdp, flash_sdp_enabled),
    "enable_math": (enable_math_sdp, math_sdp_enabled),
    "enable_mem_efficient": (enable_mem_efficient_sdp, mem_efficient_sdp_enabled),
    "enable_cudnn": (enable_cudnn_sdp, cudnn_sdp_enabled),
}


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Iterator[None]:  # fmt: skip
    """A context with other settings of the kernels of attention, of which there is one here."""
    wanted = {name: value for name, value in locals().items() if name in _KERNELS}
    before = {name: _KERNELS[name][1]() for name in wanted}
    try:
        for name, value in wanted.items():
            _KERNELS[name][0](value)
        yield
    finally:
        for name, value in before.items():
            _KERNELS[name][0](value)


def is_built() -> bool:
    """False: there is no CUDA."""
    return False


def preferred_linalg_library(backend: str | None = None) -> str:
    """ "default": NumPy's and SciPy's LAPACK."""
    return "default"
