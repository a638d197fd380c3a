"""A log that TensorBoard shows: scalars, histograms, images, texts, graphs. As `torch.utils.tensorboard`."""

from eager.utils.tensorboard.writer import FileWriter, SummaryWriter
from graphc.lazy import listing

__all__ = ["FileWriter", "SummaryWriter"]
__dir__ = listing(__name__)
