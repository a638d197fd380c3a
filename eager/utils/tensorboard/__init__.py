"""A log that TensorBoard shows: scalars, histograms, images, texts, graphs. As `torch.utils.tensorboard`."""

from eager.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
