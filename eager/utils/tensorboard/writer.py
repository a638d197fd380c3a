"""SummaryWriter: writes event files into a folder that TensorBoard shows."""

from __future__ import annotations

import os
import time
from datetime import datetime
from typing import Any

from eager.core.shown import ShownObject
from eager.utils.tensorboard import plugins, summaries
from eager.utils.tensorboard.summaries import EXTRA, FEATURE, hparams, message, module
from graphc.errors import require


class FileWriter:
    """One event file in `log_dir`, written by a thread. As `torch.utils.tensorboard.FileWriter`."""

    def __init__(self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        writer = module("summary.writer.event_file_writer").EventFileWriter
        self.event_writer = writer(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an Event message, with the time (now, if none is given) and the step."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a Summary message."""
        self.add_event(message("Event")(summary=summary), global_step, walltime)

    def add_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Write a GraphDef message."""
        self.add_event(message("Event")(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Write what waits to the disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Write to the file again after `close`."""
        self.event_writer.reopen()


class SummaryWriter(ShownObject):
    """Logs the course of a training run. As `torch.utils.tensorboard.SummaryWriter`.

    log_dir: the folder of the run, by default "runs/" with the time, the host and `comment`. With `purge_step`, what an
    earlier run has logged from that step on is hidden. MissingExtraError if tensorboard is not installed.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ):
        if not log_dir:
            import socket

            moment = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{moment}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None  # by folder; None when closed
        self._embeddings: list[Any] = []  # what the projector's settings say of each
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The writer of the run's folder; made anew after `close`."""
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                event, log = message("Event"), message("SessionLog")
                self.file_writer.add_event(event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(event(step=self.purge_step, session_log=log(status=log.START)))
                self.purge_step = None
        return self.file_writer

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _add(self, summary: Any, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, step, walltime)

    def get_logdir(self) -> str:
        """The folder of the run."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Log one number. AssertionError for a tensor of more than one element."""
        self._add(summaries.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log several numbers to be drawn in one chart, each in a folder of its own below the run's."""
        self._get_file_writer()
        walltime = time.time() if walltime is None else walltime
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            assert self.all_writers is not None
            if folder not in self.all_writers:
                self.all_writers[folder] = self._open(folder)
            self.all_writers[folder].add_summary(summaries.scalar(main_tag, value), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Log the distribution of the elements of `values`. ValueError if there are none."""
        self._add(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float, bucket_limits: Any,
        bucket_counts: Any, global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log a distribution that has been counted already. ValueError unless limits and counts are as many."""
        made = summaries.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(made, global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Log a text, which is shown as Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Log a picture: numbers in [0, 1] or uint8, with axes `dataformats`. Needs Pillow."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Log pictures side by side, in rows of 8. Needs Pillow."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Log a matplotlib figure, or a list of them, and close it. Needs Pillow."""
        pixels = summaries.figure_pixels(figure, close)
        self._add(summaries.image(tag, pixels, "NCHW" if pixels.ndim == 4 else "CHW"), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Log the settings of a run and how it came out, to be compared with other runs.

        They go to a folder `run_name` (by default the time) below the run's. Settings are numbers, strings and bools.
        """
        messages = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, str(time.time()) if run_name is None else run_name)
        with SummaryWriter(folder) as run:
            for each in messages:
                run._add(each, None, None)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log precision and recall of predictions in [0, 1], at `num_thresholds` (at most 127) thresholds."""
        self._add(plugins.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: int | None = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log a curve that has been counted already, a number for each threshold."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        self._add(plugins.pr_curve_raw(tag, (*counts, precision, recall), num_thresholds), global_step, walltime)

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
        config_dict: dict[str, Any] | None = None, global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log points in space, or triangles of them: (batch, number, 3) each."""
        self._add(plugins.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Log how scalars are drawn: {category: {title: ["Multiline" or "Margin", tags]}}. Once in a run."""
        self._add(plugins.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Draw several scalars in one chart; see `add_custom_scalars`."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Draw a scalar between two others: `tags` are of the value, the lower and the upper; `add_custom_scalars`."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None,
        tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Log points (N, D) for the projector, with N labels, and N pictures (C, H, W) in [0, 1]. These need Pillow.

        metadata_header: names of the columns, if a label is a row of several.
        """
        step, folder = str(global_step or 0).zfill(5), self._get_file_writer().get_logdir()
        subfolder = f"{step}/{tag.translate(plugins.ESCAPES)}"
        about = plugins.embedding(folder, subfolder, f"{tag}:{step}", mat, metadata, label_img, metadata_header)
        self._embeddings.append(about)
        config = module("plugins.projector.projector_config_pb2").ProjectorConfig(embeddings=self._embeddings)
        text = require("google.protobuf.text_format", FEATURE, EXTRA).MessageToString(config)
        with open(os.path.join(folder, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(text)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Log the graph of `model`, traced in evaluation mode for `input_to_model` (a tuple: its arguments).

        CaptureError for what cannot be captured in a graph.
        """
        from eager.utils.graphdef import graph_def
        from graphc import trace

        arguments = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        modules = [(each, each.training) for each in model.modules()] if hasattr(model, "modules") else []
        try:
            for each, _ in modules:
                each.training = False
            graph = trace(model, *(() if input_to_model is None else arguments))
        finally:
            for each, training in modules:
                each.training = training
        if verbose:
            print(graph)
        self._get_file_writer().add_graph(graph_def(graph))

    def flush(self) -> None:
        """Write what waits to the disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files. Logging again opens a new one."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
