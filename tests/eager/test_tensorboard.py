"""What SummaryWriter writes is what TensorBoard reads."""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch
from graphc.errors import MissingExtraError

reader = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator", reason="the extra 'tensorboard' is not installed"
)
# protobuf and TensorBoard warn of their own dependencies
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def read(folder: Path) -> Any:
    accumulator = reader.EventAccumulator(str(folder), size_guidance={reader.TENSORS: 0, reader.HISTOGRAMS: 0})
    return accumulator.Reload()


@pytest.fixture
def writer(tmp_path: Path):
    from eager.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as made:
        yield made


def test_scalars(writer: Any, tmp_path: Path):
    for step, value in enumerate(
        (1, 0.5, torch.tensor(0.25), np.float32(0.125), torch.tensor([2.0], requires_grad=True))
    ):
        writer.add_scalar("loss/train", value, step, walltime=100.0 + step)
    writer.add_scalar("exact", 0.1, 7, new_style=True, double_precision=True)
    writer.flush()
    found = read(tmp_path)
    assert [(e.step, e.value, e.wall_time) for e in found.Scalars("loss/train")] == [
        (0, 1.0, 100.0), (1, 0.5, 101.0), (2, 0.25, 102.0), (3, 0.125, 103.0), (4, 2.0, 104.0)
    ]  # fmt: skip
    assert found.Tensors("exact")[0].tensor_proto.double_val == [0.1]


def test_scalars_of_one_chart_have_folders(writer: Any, tmp_path: Path):
    writer.add_scalars("run/xy", {"sin": 0.5, "cos": torch.tensor(0.75)}, 3)
    writer.flush()
    for tag, value in (("sin", 0.5), ("cos", 0.75)):
        assert [(e.step, e.value) for e in read(tmp_path / f"run_xy_{tag}").Scalars("run/xy")] == [(3, value)]


def test_histograms_count_every_element_once(writer: Any, tmp_path: Path):
    values = torch.tensor([[-3.0, -1.0, 0.0], [0.0, 2.5, 1e3]])
    writer.add_histogram("w", values, 2)
    writer.add_histogram("few", torch.arange(100.0), bins=30, max_bins=10)
    writer.add_histogram_raw("raw", 0.0, 2.0, 3, 3.0, 5.0, [1.0, 2.0], [1, 2], 0)
    writer.flush()
    found = read(tmp_path)
    (event,) = found.Histograms("w")
    h = event.histogram_value
    assert (event.step, h.min, h.max, h.num) == (2, -3.0, 1000.0, 6)
    assert h.sum == pytest.approx(998.5) and h.sum_squares == pytest.approx(1_000_016.25)
    assert sum(h.bucket) == 6
    limits = np.array(h.bucket_limit)
    for value in values.numpy().ravel():
        assert h.bucket[int(np.searchsorted(limits, value, side="right"))] > 0
    assert sum(found.Histograms("few")[0].histogram_value.bucket) == 100
    assert len(found.Histograms("few")[0].histogram_value.bucket) <= 12
    assert found.Histograms("raw")[0].histogram_value.bucket == [1.0, 2.0]


def test_text(writer: Any, tmp_path: Path):
    writer.add_text("note", "# ü", 4)
    writer.flush()
    (event,) = read(tmp_path).Tensors("note/text_summary")
    assert event.step == 4 and event.tensor_proto.string_val[0].decode() == "# ü"
    assert "note/text_summary" in read(tmp_path).PluginTagToContent("text")


def pixels_of(event: Any) -> np.ndarray:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    return np.asarray(image.open(io.BytesIO(event.encoded_image_string)))


def test_images(writer: Any, tmp_path: Path):
    pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    ramp = torch.linspace(0, 1, 12).reshape(3, 2, 2)
    writer.add_image("float", ramp, 1)
    writer.add_image("bytes", np.arange(24, dtype=np.uint8).reshape(2, 4, 3), dataformats="HWC")
    writer.add_image("grey", torch.ones(2, 5), dataformats="HW")
    writer.add_images("grid", torch.stack([torch.full((1, 2, 3), i / 10) for i in range(10)]))
    writer.flush()
    found = read(tmp_path)
    expected = (ramp.numpy().transpose(1, 2, 0) * 255).astype(np.uint8)
    np.testing.assert_array_equal(pixels_of(found.Images("float")[0]), expected)
    np.testing.assert_array_equal(pixels_of(found.Images("bytes")[0]), np.arange(24).reshape(2, 4, 3))
    assert pixels_of(found.Images("grey")[0]).shape == (2, 5, 3)
    grid = pixels_of(found.Images("grid")[0])
    assert grid.shape == (4, 24, 3)
    assert grid[3, 3, 0] == int(0.9 * 255) and grid[3, 23, 0] == 0  # the tenth picture; an empty place


def test_figures(writer: Any, tmp_path: Path):
    pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    figures = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    writer.add_figure("plot", figures.Figure(figsize=(1, 0.5), dpi=100), 2)
    writer.flush()
    (event,) = read(tmp_path).Images("plot")
    assert (event.step, event.width, event.height) == (2, 100, 50)


def test_hparams(writer: Any, tmp_path: Path):
    from tensorboard.plugins.hparams import plugin_data_pb2

    settings = {"lr": 0.1, "layers": 3, "act": "relu", "bias": True, "left out": None}
    writer.add_hparams(settings, {"accuracy": 0.9}, {"act": ["relu", "tanh"]}, run_name="one", global_step=5)
    found = read(tmp_path / "one")
    assert [(e.step, e.value) for e in found.Scalars("accuracy")] == [(5, pytest.approx(0.9))]
    content = found.PluginTagToContent("hparams")
    assert set(content) == {f"_hparams_/{name}" for name in ("experiment", "session_start_info", "session_end_info")}
    start = plugin_data_pb2.HParamsPluginData.FromString(content["_hparams_/session_start_info"]).session_start_info
    assert start.hparams["lr"].number_value == 0.1 and start.hparams["act"].string_value == "relu"
    assert start.hparams["bias"].bool_value is True and set(start.hparams) == set(settings) - {"left out"}
    experiment = plugin_data_pb2.HParamsPluginData.FromString(content["_hparams_/experiment"]).experiment
    assert [metric.name.tag for metric in experiment.metric_infos] == ["accuracy"]
    domains = {info.name: [v.string_value for v in info.domain_discrete.values] for info in experiment.hparam_infos}
    assert domains["act"] == ["relu", "tanh"]


def test_graph(writer: Any, tmp_path: Path):
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
    model[2].eval()
    writer.add_graph(model, torch.ones(4, 2))
    writer.flush()
    assert [m.training for m in model.modules()] == [True, True, True, False]
    graph = read(tmp_path).Graph()
    nodes = {node.name: node for node in graph.node}
    assert {"0/weight", "0/bias", "output_0"} <= nodes.keys()
    assert len(nodes) == len(graph.node)
    for node in graph.node:
        assert all(name in nodes for name in node.input), node
    weight = nodes["0/weight"]
    assert weight.op == "input" and weight.attr["dtype"].type == 1
    assert [d.size for d in weight.attr["_output_shapes"].list.shape[0].dim] == [3, 2]
    assert nodes["output_0"].input


def test_a_model_that_fails_keeps_its_mode(writer: Any):
    class Broken(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("broken")

    model = Broken()
    with pytest.raises(ValueError, match="broken"):
        writer.add_graph(model, torch.ones(1))
    assert model.training


def events_of(folder: Path) -> list[Any]:
    """The events of a folder's only file, read without TensorBoard's logic."""
    from tensorboard.compat.proto.event_pb2 import Event

    (path,) = folder.glob("events.out.tfevents.*")
    data, at, events = path.read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        events.append(Event.FromString(data[at + 12 : at + 12 + length]))
        at += 16 + length
    return events


def test_purged_steps_are_hidden(tmp_path: Path):
    from eager.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path, purge_step=3, filename_suffix=".mine") as writer:
        writer.add_scalar("x", 1.0, 3)
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".mine")
    events = events_of(tmp_path)
    assert [e.step for e in events[1:3]] == [3, 3]
    assert events[1].file_version == "brain.Event:2" and events[2].session_log.status == 1  # START


def test_folder_and_closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from eager.utils.tensorboard import SummaryWriter

    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_mine")
    assert writer.get_logdir().startswith("runs") and writer.get_logdir().endswith("_mine")
    writer.add_scalar("x", 1.0)
    writer.close()
    writer.close()
    writer.add_scalar("x", 2.0)  # opens a new file
    writer.close()
    assert len(list((tmp_path / writer.get_logdir()).iterdir())) == 2


@pytest.mark.parametrize(
    ("action", "kind", "message"),
    [
        (lambda w: w.add_scalar("x", torch.ones(2)), AssertionError, "one element"),
        (lambda w: w.add_scalar("x", "text"), NotImplementedError, "str"),
        (lambda w: w.add_histogram("x", torch.ones(0)), ValueError, "no element"),
        (lambda w: w.add_histogram_raw("x", 0, 1, 1, 1, 1, [1.0], [1, 2]), ValueError, "bucket_limits"),
        (lambda w: w.add_image("x", torch.ones(2, 2)), AssertionError, "input format are different"),
        (lambda w: w.add_image("x", torch.ones(2, 2), dataformats="HH"), AssertionError, "twice"),
        (lambda w: w.add_hparams([], {}), TypeError, "dictionary"),
        (lambda w: w.add_hparams({"a": [1]}, {}), ValueError, "hparam 'a'"),
        (lambda w: w.add_hparams({"a": 1}, {}, {"b": [1]}), TypeError, "hparam_domain_discrete"),
    ],
)
def test_errors(writer: Any, action: Any, kind: type[Exception], message: str):
    with pytest.raises(kind, match=message):
        action(writer)


def test_an_absent_library_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from eager.utils.tensorboard import SummaryWriter

    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'graphc\[tensorboard\]'"):
        SummaryWriter(tmp_path)


def tensor_of(found: Any, tag: str) -> np.ndarray:
    event = found.Tensors(tag)[0].tensor_proto
    return np.array(event.float_val).reshape([dim.size for dim in event.tensor_shape.dim])


def test_precision_and_recall(writer: Any, tmp_path: Path):
    labels, predictions = torch.tensor([1, 0, 1, 1, 0]), torch.tensor([0.9, 0.8, 0.7, 0.2, 0.1])
    writer.add_pr_curve("curve", labels, predictions, 3, num_thresholds=5)
    writer.add_pr_curve_raw("raw", *np.arange(12.0).reshape(6, 2), num_thresholds=2)
    writer.flush()
    found = read(tmp_path)
    curve = tensor_of(found, "curve")
    # at least 0, 1/4, 1/2, 3/4: the true and the false among 5, 3, 3, 2; none is at least 1
    np.testing.assert_allclose(curve[:4], [[3, 2, 2, 1, 0], [2, 1, 1, 1, 0], [0, 1, 1, 1, 2], [0, 1, 1, 2, 3]])
    np.testing.assert_allclose(curve[4, :4], [3 / 5, 2 / 3, 2 / 3, 1 / 2])
    np.testing.assert_allclose(curve[5, :4], [1, 2 / 3, 2 / 3, 1 / 3])
    np.testing.assert_array_equal(tensor_of(found, "raw"), np.arange(12.0).reshape(6, 2))


def test_meshes_and_layouts(writer: Any, tmp_path: Path):
    from tensorboard.plugins.custom_scalar import layout_pb2

    points = torch.arange(9.0).reshape(1, 3, 3)
    writer.add_mesh("shape", points, colors=points.to(torch.uint8), faces=torch.tensor([[[0, 1, 2]]]))
    writer.add_custom_scalars({"one": {"lines": ["Multiline", ["a", "b"]], "band": ["Margin", ["a", "b", "c"]]}})
    with pytest.raises(AssertionError, match=r"len\(tags\) != 3"):
        writer.add_custom_scalars_marginchart(["a"])
    writer.flush()
    found = read(tmp_path)
    np.testing.assert_array_equal(tensor_of(found, "shape_VERTEX"), points.numpy())
    np.testing.assert_array_equal(tensor_of(found, "shape_FACE"), [[[0, 1, 2]]])
    layout = layout_pb2.Layout.FromString(found.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    lines, band = layout.category[0].chart
    assert list(lines.multiline.tag) == ["a", "b"]
    assert band.margin.series[0].lower == "b"


def test_embeddings(writer: Any, tmp_path: Path):
    from google.protobuf import text_format
    from PIL import Image
    from tensorboard.plugins.projector import projector_config_pb2

    points, images = torch.arange(6.0).reshape(3, 2), torch.ones(3, 3, 4, 5)
    writer.add_embedding(points, ["x", "y", "z"], images, global_step=2)
    writer.add_embedding(points, [[1, "p"], [2, "q"], [3, "r"]], tag="a/b", metadata_header=["n", "name"])
    with pytest.raises(AssertionError, match="#labels"):
        writer.add_embedding(points, ["x"], tag="short")
    text = (tmp_path / "projector_config.pbtxt").read_text()
    first, second = text_format.Parse(text, projector_config_pb2.ProjectorConfig()).embeddings
    assert (first.tensor_name, list(first.sprite.single_image_dim)) == ("default:00002", [5, 4])
    assert (tmp_path / first.tensor_path).read_text() == "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n"
    assert (tmp_path / first.metadata_path).read_text() == "x\ny\nz\n"
    with Image.open(tmp_path / first.sprite.image_path) as sprite:
        assert sprite.size == (10, 8)
    assert (tmp_path / second.metadata_path).read_text().startswith("n\tname\n1\tp\n")
    assert not list(tmp_path.glob("*/short"))


def test_files_are_pytorchs(tmp_path: Path):
    torch_tensorboard = pytest.importorskip("torch.utils.tensorboard")
    theirs = pytest.importorskip("torch")

    def written(package: Any, kind: Any, folder: Path) -> Any:
        labels, predictions = package.tensor([1, 0, 1, 1]), package.tensor([0.9, 0.8, 0.3, 0.2])
        with kind(folder) as made:
            made.add_pr_curve("curve", labels, predictions, num_thresholds=200)
            made.add_mesh("shape", package.ones(1, 3, 3), config_dict={"camera": {"fov": 75}})
            made.add_embedding(package.ones(2, 3), ["x", "y"], tag="a/b")
        found = read(folder)
        files = {
            str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.suffix in (".tsv", ".pbtxt")
        }
        tags = ("curve", "shape_VERTEX")
        return [tensor_of(found, tag).tolist() for tag in tags], files

    from eager.utils.tensorboard import SummaryWriter

    ours = written(torch, SummaryWriter, tmp_path / "ours")
    assert ours == written(theirs, torch_tensorboard.SummaryWriter, tmp_path / "theirs")
