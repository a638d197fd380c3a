"""Datasets and loaders."""

from collections.abc import Iterator

import eager as torch
from eager import Tensor
from eager.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, int]]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, idx: int) -> tuple[Tensor, int]:
        return torch.tensor([float(idx)]), idx * idx


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        for k in range(5):
            yield torch.full((2,), float(k))


def collate(samples: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
    xs, ys = zip(*samples, strict=True)
    return torch.stack(xs), torch.tensor(ys)


squares = Squares(10)
train, test = random_split(squares, [8, 2], generator=torch.Generator().manual_seed(0))
loader = DataLoader(train, batch_size=4, shuffle=True, collate_fn=collate)
for xs, ys in loader:
    print(xs.shape, ys.sum())
for batch in DataLoader(Stream(), batch_size=2):
    print(batch)
x, y = TensorDataset(torch.zeros(4, 2), torch.zeros(4))[0]
sample, square = test[0]
print(sample.mean(), square + 1, len(loader), len(Subset(squares, [1, 2])), len(ConcatDataset([squares, squares])))
print(x.shape, y.shape, squares[3][0].device.type)
DataLoader(squares, batchsize=4)  # error: reportCallIssue
DataLoader()  # error: reportCallIssue
DataLoader(squares, batch_size="4")  # error: reportArgumentType
TensorDataset([1, 2])  # error: reportArgumentType
random_split(squares)  # error: reportCallIssue
sample.meen()  # error: reportAttributeAccessIssue
square.mean()  # error: reportAttributeAccessIssue
