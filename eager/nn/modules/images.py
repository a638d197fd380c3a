"""Layers of images: pixels moved, resized, taken apart."""

from __future__ import annotations

from typing import Any

from eager.nn import functional as F
from eager.nn.layer import Layer

__all__ = [
    "ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unfold", "Upsample", "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]  # fmt: skip

WINDOW = "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"


class PixelShuffle(Layer, shown="upscale_factor={upscale_factor}", function=F.pixel_shuffle):
    """(*, C * r^2, H, W) -> (*, C, H * r, W * r)."""

    def __init__(self, upscale_factor: int):
        self._keep(locals())


class PixelUnshuffle(Layer, shown="downscale_factor={downscale_factor}", function=F.pixel_unshuffle):
    """(*, C, H * r, W * r) -> (*, C * r^2, H, W)."""

    def __init__(self, downscale_factor: int):
        self._keep(locals())


class ChannelShuffle(Layer, shown="groups={groups}", function=F.channel_shuffle):
    """The channels of (N, C, *), dealt out from groups."""

    def __init__(self, groups: int):
        self._keep(locals())


class Upsample(Layer, function=F.interpolate):
    """(N, C, *) resized to `size` or by `scale_factor`."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: bool | None = None):  # fmt: skip
        self._keep(locals())
        self.name = type(self).__name__
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None

    def extra_repr(self) -> str:
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample with mode "nearest"."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode "bilinear", corners aligned."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class Unfold(Layer, shown=WINDOW, function=F.unfold):
    """The blocks of images as columns: (N, C, H, W) -> (N, C * kh * kw, blocks)."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        self._keep(locals())


class Fold(Layer, function=F.fold, shown=f"output_size={{output_size}}, {WINDOW}"):
    """Columns added up to images: (N, C * kh * kw, blocks) -> (N, C, *output_size)."""

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        self._keep(locals())
