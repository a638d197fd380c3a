"""Summaries of TensorBoard's plugins: precision and recall, meshes, layouts of charts, embeddings."""

from __future__ import annotations

import io
import json
import math
import os
from typing import Any

import numpy as np

from eager.utils.tensorboard.summaries import EXTRA, FEATURE, as_array, message, module
from graphc.errors import require

MOST_THRESHOLDS = 127
ESCAPES = str.maketrans({"%": "%25", "/": "%2f", "\\": "%5c"})  # of tags that name folders
LEAST_COUNT = 1e-7  # keeps quotients finite where nothing is counted


def _of_plugin(tag: str, plugin: str, tensor: Any, content: bytes = b"") -> Any:
    summary, metadata = message("Summary"), message("SummaryMetadata")
    about = metadata(plugin_data=metadata.PluginData(plugin_name=plugin, content=content))
    return summary(value=[summary.Value(tag=tag, metadata=about, tensor=tensor)])


def _floats(array: np.ndarray) -> Any:
    shape = message("TensorShapeProto")
    dims = [shape.Dim(size=n) for n in array.shape]
    return message("TensorProto")(dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=shape(dim=dims))


def pr_curve_raw(tag: str, counts: Any, num_thresholds: int) -> Any:
    """A curve of true and false positives, true and false negatives, precision and recall: a row of `counts` each."""
    data = module("plugins.pr_curve.plugin_data_pb2").PrCurvePluginData
    about = data(version=0, num_thresholds=min(num_thresholds, MOST_THRESHOLDS)).SerializeToString()
    return _of_plugin(tag, "pr_curves", _floats(np.stack([as_array(row) for row in counts])), about)


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int, weights: Any) -> Any:
    """The curve of predictions in [0, 1] for labels that are true or false."""
    n = min(num_thresholds, MOST_THRESHOLDS)
    truth, bins = as_array(labels).astype(np.float64), np.floor(as_array(predictions) * (n - 1)).astype(np.int32)
    weight = 1.0 if weights is None else as_array(weights)

    def at_least(of: np.ndarray) -> np.ndarray:
        """How many, by weight, have a prediction of at least each threshold."""
        counts, _ = np.histogram(bins, bins=n, range=(0, n - 1), weights=of * weight)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = at_least(truth), at_least(1.0 - truth)
    fn = tp[0] - tp
    precision, recall = (tp / np.maximum(LEAST_COUNT, total) for total in (tp + fp, tp + fn))
    return pr_curve_raw(tag, (tp, fp, fp[0] - fp, fn, precision, recall), n)


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: dict[str, Any] | None) -> Any:
    """Points in space, with colours and triangles if there are any: arrays of shape (batch, number, 3)."""
    plugin, kinds = module("plugins.mesh.metadata"), module("plugins.mesh.plugin_data_pb2").MeshPluginData
    given = [(vertices, kinds.VERTEX), (faces, kinds.FACE), (colors, kinds.COLOR)]
    parts = [(as_array(value), kind) for value, kind in given if value is not None]
    components = plugin.get_components_bitmask([kind for _, kind in parts])
    text = json.dumps({} if config is None else config, sort_keys=True)
    summary = message("Summary")
    return summary(value=[
        summary.Value(
            tag=plugin.get_instance_name(tag, kind), tensor=_floats(array),
            metadata=plugin.create_summary_metadata(
                tag, None, kind, components, list(array.shape), None, json_config=text
            ),
        )
        for array, kind in parts
    ])  # fmt: skip


def custom_scalars(layout: dict[str, dict[str, Any]]) -> Any:
    """{category: {title: ["Multiline" or "Margin", tags]}} as charts. AssertionError for a margin not of three tags."""
    forms = module("plugins.custom_scalar.layout_pb2")

    def chart(title: str, kind: str, tags: list[str]) -> Any:
        if kind != "Margin":
            return forms.Chart(title=title, multiline=forms.MultilineChartContent(tag=tags))
        if len(tags) != 3:
            raise AssertionError("len(tags) != 3")
        series = forms.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
        return forms.Chart(title=title, margin=forms.MarginChartContent(series=[series]))

    categories = [
        forms.Category(title=name, chart=[chart(title, *about[:2]) for title, about in charts.items()])
        for name, charts in layout.items()
    ]
    text = forms.Layout(category=categories).SerializeToString()
    tensor = message("TensorProto")(dtype="DT_STRING", string_val=[text], tensor_shape=message("TensorShapeProto")())
    return _of_plugin("custom_scalars__config__", "custom_scalars", tensor)


def embedding(folder: str, subfolder: str, name: str, points: Any, labels: Any, images: Any, header: Any) -> Any:
    """Write points, labels and images into a folder below `folder`; returns what the projector's settings say of them.

    points (N, D); labels: N of them, or N rows of columns that `header` names; images (N, C, H, W) in [0, 1].
    AssertionError unless there are as many of each. Nothing is written then.
    """
    matrix = as_array(points)
    if matrix.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    if labels is not None and len(labels) != matrix.shape[0]:
        raise AssertionError("#labels should equal with #data points")
    if labels is not None and header and len(header) != len(labels[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    pictures = None if images is None else as_array(images)
    if pictures is not None and pictures.shape[0] != matrix.shape[0]:
        raise AssertionError("#images should equal with #data points")
    place = os.path.join(folder, subfolder)
    os.makedirs(place, exist_ok=True)
    info = module("plugins.projector.projector_config_pb2").EmbeddingInfo(
        tensor_name=name, tensor_path=os.path.join(subfolder, "tensors.tsv")
    )
    _write_rows(os.path.join(place, "tensors.tsv"), matrix.tolist())
    if labels is not None:
        _write_rows(os.path.join(place, "metadata.tsv"), [header, *labels] if header else [[each] for each in labels])
        info.metadata_path = os.path.join(subfolder, "metadata.tsv")
    if pictures is not None:
        with open(os.path.join(place, "sprite.png"), "wb") as file:
            file.write(sprite(pictures))
        info.sprite.image_path = os.path.join(subfolder, "sprite.png")
        info.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
    return info


def _write_rows(path: str, rows: Any) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in rows)


def sprite(images: np.ndarray) -> bytes:
    """Pictures (N, C, H, W) in [0, 1] in one square PNG, row by row. Needs Pillow."""
    n, _, height, width = images.shape
    side = math.ceil(math.sqrt(n))
    sheet = np.zeros((side * height, side * width, 3))
    for k, image in enumerate(images):
        row, column = divmod(k, side)
        sheet[row * height : (row + 1) * height, column * width : (column + 1) * width] = image.transpose(1, 2, 0)
    made = require("PIL.Image", FEATURE, EXTRA).fromarray((sheet * 255).clip(0, 255).astype(np.uint8))
    buffer = io.BytesIO()
    made.save(buffer, format="PNG")
    return buffer.getvalue()
