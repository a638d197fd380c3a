"""Values as TensorBoard's Summary messages."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.utils.tensorboard.protocol import message
from graphc.errors import require

LEAST, MOST, GROWTH = 1e-12, 1e20, 1.1  # TensorBoard's own buckets: their limits grow by a factor, on both sides of 0
COLUMNS = 8  # images side by side
AXES = "NCHW"


def as_array(value: Any) -> np.ndarray:
    """A tensor, array, number or list of them as an ndarray. NotImplementedError for anything else."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if isinstance(value, (list, tuple)):
        return np.asarray([as_array(each) for each in value])
    if isinstance(value, (np.ndarray, np.generic, int, float, complex)):
        return np.asarray(value)
    raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")


def _summary(tag: str, **content: Any) -> Any:
    summary = message("Summary")
    return summary(value=[summary.Value(tag=tag, **content)])


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """One number. AssertionError for more than one."""
    array = as_array(value)
    if array.size != 1:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). Was given size: "
            f"{array.size} and {array.ndim} dimensions."
        )
    number = float(array.reshape(()))
    if not new_style:
        return _summary(tag, simple_value=number)
    tensor, metadata = message("TensorProto"), message("SummaryMetadata")
    kind = (
        {"double_val": [number], "dtype": "DT_DOUBLE"}
        if double_precision
        else {"float_val": [number], "dtype": "DT_FLOAT"}
    )
    plugin = metadata.PluginData(plugin_name="scalars")
    return _summary(tag, tensor=tensor(**kind), metadata=metadata(plugin_data=plugin))


def default_buckets() -> list[float]:
    """The limits of TensorBoard's own buckets, from the most negative up."""
    limits = []
    limit = LEAST
    while limit < MOST:
        limits.append(limit)
        limit *= GROWTH
    return [*(-x for x in reversed(limits)), 0.0, *limits]


def histogram(tag: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> Any:
    """The distribution of all elements. `bins`: "tensorflow", or as `numpy.histogram` takes it.

    ValueError for no elements.
    """
    array = as_array(values).astype(np.float64).reshape(-1)
    if array.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(array, default_buckets() if isinstance(bins, str) and bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1:step], limits[-1])
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(filled[0]), int(filled[-1])
    # an empty bucket before the first filled one, where there is none, tells where that begins
    before = [0] if first == 0 else counts[first - 1 : first].tolist()
    buckets = [*before, *counts[first : last + 1].tolist()]
    return histogram_raw(
        tag, array.min(), array.max(), array.size, array.sum(), float(array @ array),
        limits[first : last + 2].tolist(), buckets,
    )  # fmt: skip


def histogram_raw(
    tag: str, least: float, most: float, count: float, total: float, squares: float,
    limits: Sequence[float], counts: Sequence[float],
) -> Any:  # fmt: skip
    """A distribution that has been counted already. ValueError unless there are as many limits as counts."""
    if len(limits) != len(counts):
        raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
    made = message("HistogramProto")(
        min=least, max=most, num=count, sum=total, sum_squares=squares, bucket_limit=limits, bucket=counts
    )
    return _summary(tag, histo=made)


def text(tag: str, value: str) -> Any:
    """A text, which TensorBoard reads as Markdown."""
    metadata, tensor, shape = message("SummaryMetadata"), message("TensorProto"), message("TensorShapeProto")
    plugin = metadata.PluginData(plugin_name="text", content=b"\x10\x00\x18\x00")  # a TextPluginData of version 0
    content = tensor(dtype="DT_STRING", string_val=[value.encode()], tensor_shape=shape(dim=[shape.Dim(size=1)]))
    return _summary(f"{tag}/text_summary", metadata=metadata(plugin_data=plugin), tensor=content)


def image(tag: str, pixels: Any, layout: str = "CHW") -> Any:
    """A picture (or a grid of them): numbers in [0, 1] or uint8, of 1, 3 or 4 channels.

    layout: which axes `pixels` has, in order: H, W, and maybe C and N. Needs Pillow.
    """
    library = require("PIL.Image", "SummaryWriter.add_image", "tensorboard")
    array = as_array(pixels)
    grid = in_one(array, layout)
    scale = 1 if array.dtype == np.uint8 else 255
    bytes_ = np.clip(grid.astype(np.float32) * scale, 0, 255).astype(np.uint8)
    height, width, channels = bytes_.shape
    buffer = io.BytesIO()
    library.fromarray(bytes_[..., 0] if channels == 1 else bytes_).save(buffer, format="PNG")
    content = message("Summary").Image(
        height=height, width=width, colorspace=channels, encoded_image_string=buffer.getvalue()
    )
    return _summary(tag, image=content)


def in_one(array: np.ndarray, layout: str) -> np.ndarray:
    """Pictures with axes `layout` as one of shape (H, W, C): several go into rows of up to 8, one channel into three.

    AssertionError if the axes do not fit.
    """
    axes = layout.upper()
    if len(set(axes)) != len(axes):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {layout}")
    if array.ndim != len(axes):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {layout}"
        )
    if not {"H", "W"} <= set(axes) <= set(AXES):
        raise AssertionError(f"input_format must name the axes H and W, and may name C and N; got {layout}")
    array = array.transpose([axes.index(axis) for axis in AXES if axis in axes])
    if "C" not in axes:
        array = np.expand_dims(array, -3)
    if array.shape[-3] == 1:
        array = np.repeat(array, 3, axis=-3)
    if "N" not in axes:
        return array.transpose(1, 2, 0)
    count, channels, height, width = array.shape
    columns = min(count, COLUMNS)
    rows = -(-count // columns)
    grid = np.zeros((rows * columns, channels, height, width), array.dtype)
    grid[:count] = array
    grid = grid.reshape(rows, columns, channels, height, width).transpose(0, 3, 1, 4, 2)
    return grid.reshape(rows * height, columns * width, channels)


def figure_pixels(figure: Any, close: bool = True) -> np.ndarray:
    """What a matplotlib figure, or a list of them, shows: (3, H, W) or (N, 3, H, W) in [0, 255]."""
    agg = require("matplotlib.backends.backend_agg", "SummaryWriter.add_figure", "tensorboard")
    if isinstance(figure, (list, tuple)):
        return np.stack([figure_pixels(each, close) for each in figure])
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].transpose(2, 0, 1).copy()
    if close:
        require("matplotlib.pyplot", "SummaryWriter.add_figure", "tensorboard").close(figure)
    return pixels
