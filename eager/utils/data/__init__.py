"""Datasets, samplers, and the loader that makes batches of them. As `torch.utils.data`."""

from eager.utils.data import distributed
from eager.utils.data.bar import progress
from eager.utils.data.collate import default_collate, default_convert
from eager.utils.data.dataloader import DataLoader
from eager.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from eager.utils.data.distributed import DistributedSampler
from eager.utils.data.files import ArrayDataset, TableDataset, TokenDataset
from eager.utils.data.prefetch import Prefetcher
from eager.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from eager.utils.data.worker import get_worker_info

__all__ = [
    "ArrayDataset", "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "Prefetcher", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TableDataset", "TensorDataset", "TokenDataset", "WeightedRandomSampler", "default_collate",
    "default_convert", "distributed", "get_worker_info", "progress", "random_split",
]  # fmt: skip
