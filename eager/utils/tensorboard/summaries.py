"""Values, and the settings of a run, as TensorBoard's messages, which are imported when the first writer is made."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from graphc.errors import require

FEATURE, EXTRA = "torch.utils.tensorboard", "tensorboard"
# message -> module below tensorboard.compat.proto
MESSAGES = {
    **dict.fromkeys(("Event", "SessionLog"), "event_pb2"),
    **dict.fromkeys(("HistogramProto", "Summary", "SummaryMetadata"), "summary_pb2"),
    **dict.fromkeys(("TensorProto",), "tensor_pb2"),
    **dict.fromkeys(("TensorShapeProto",), "tensor_shape_pb2"),
    **dict.fromkeys(("GraphDef",), "graph_pb2"),
    **dict.fromkeys(("NodeDef",), "node_def_pb2"),
    **dict.fromkeys(("AttrValue",), "attr_value_pb2"),
    **dict.fromkeys(("VersionDef",), "versions_pb2"),
}


def message(name: str) -> Any:
    """The class of a message. Raises MissingExtraError if tensorboard is not installed."""
    return getattr(require(f"tensorboard.compat.proto.{MESSAGES[name]}", FEATURE, EXTRA), name)


def module(name: str) -> Any:
    """A module of tensorboard. Raises MissingExtraError if it is not installed."""
    return require(f"tensorboard.{name}", FEATURE, EXTRA)


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


PLUGIN = "hparams"


def _pack(value: Any, name: str) -> dict[str, Any]:
    """A setting as a field of the protocol's Value. ValueError for a type that it has not."""
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, bool):
        return {"bool_value": value, "type": "DATA_TYPE_BOOL"}
    if isinstance(value, (int, float)):
        return {"number_value": value, "type": "DATA_TYPE_FLOAT64"}
    if isinstance(value, str):
        return {"string_value": value, "type": "DATA_TYPE_STRING"}
    raise ValueError(f"value should be one of int, float, str, bool, or torch.Tensor (hparam '{name}')")


def hparams(settings: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list[Any]] | None) -> list[Any]:
    """The experiment, the start and the end of a session with `settings`, judged by `metrics`.

    domains: the values that a setting may take. TypeError unless the arguments are dicts, ValueError for a setting that
    is no number, string or bool.
    """
    if not isinstance(settings, dict) or not isinstance(metrics, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    if not isinstance(domains or {}, dict):
        raise TypeError("hparam_domain_discrete should be a dictionary.")
    for name, allowed in (domains or {}).items():
        if name not in settings or not all(isinstance(value, type(settings[name])) for value in allowed):
            raise TypeError(f"hparam_domain_discrete[{name}] should be a list of values of hparam_dict[{name}]'s type")
    api, data = module("plugins.hparams.api_pb2"), module("plugins.hparams.plugin_data_pb2")
    value_of = require("google.protobuf.struct_pb2", FEATURE, EXTRA).Value
    start = data.SessionStartInfo()
    infos = []
    for name, setting in settings.items():
        if setting is None:
            continue
        fields = _pack(setting, name)
        kind = fields.pop("type")
        start.hparams[name].CopyFrom(value_of(**fields))
        info = api.HParamInfo(name=name, type=api.DataType.Value(kind))
        for allowed in (domains or {}).get(name, ()):
            info.domain_discrete.values.append(
                value_of(**{k: v for k, v in _pack(allowed, name).items() if k != "type"})
            )
        infos.append(info)
    judged = [api.MetricInfo(name=api.MetricName(tag=tag)) for tag in metrics]
    contents = {
        "_hparams_/experiment": data.HParamsPluginData(
            experiment=api.Experiment(hparam_infos=infos, metric_infos=judged), version=0
        ),
        "_hparams_/session_start_info": data.HParamsPluginData(session_start_info=start, version=0),
        "_hparams_/session_end_info": data.HParamsPluginData(
            session_end_info=data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS")), version=0
        ),
    }
    metadata = message("SummaryMetadata")
    return [
        _summary(
            tag, metadata=metadata(plugin_data=metadata.PluginData(plugin_name=PLUGIN, content=c.SerializeToString()))
        )
        for tag, c in contents.items()
    ]
