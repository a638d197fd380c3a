"""Datasets in files that are too large for memory: a sample, or a group of rows, is read when it is asked for."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.functional.data import tensor
from eager.utils.data.dataset import Dataset
from graphc.errors import require

NO_ARRAY = "{path} is no array file: it ends neither in .npy nor in .bin. Remedy: give the dtype of what it holds"
FORTRAN = "{path} is stored in columns, so that a row of it lies all over the file. Remedy: save it with order='C'"
CUT = "{path} ends early: {found:,} elements at {start:,}, and {count:,} are expected"
NOT_WHOLE = "{path} has {size:,} bytes, which is no whole number of elements of {dtype}"
OTHER = "{path} has rows of {found}, and {first} has rows of {expected}"
NO_TOKENS = "{path} holds {dtype}{shape}, and token files hold one row of integers"
NO_SAMPLE = "index {index} is out of range for {count:,} samples"


class ArrayFile:
    """An array in a `.npy` file, or the elements in a file without a header, of which parts are read.

    No memory is mapped: what has been read is not held, processes may be forked, and a file that is cut is an error
    that Python can catch. Raises ValueError for what is no such file, OSError.
    """

    def __init__(self, path: str | os.PathLike[str], dtype: Any = None):
        self.path = os.fspath(path)
        if dtype is None and not self.path.endswith(".npy"):
            raise ValueError(NO_ARRAY.format(path=self.path))
        if dtype is not None:
            self.dtype, self._start = _numpy(dtype), 0
            count, rest = divmod(os.path.getsize(self.path), self.dtype.itemsize)
            if rest:
                size = os.path.getsize(self.path)
                raise ValueError(NOT_WHOLE.format(path=self.path, size=size, dtype=self.dtype))
            self.shape: tuple[int, ...] = (count,)
            return
        with open(self.path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, fortran, self.dtype = read(file)
            self._start = file.tell()
        if self.dtype.hasobject or not self.shape:
            raise ValueError(f"{self.path} holds {self.dtype}{list(self.shape)}, which has no rows of numbers")
        if fortran and len(self.shape) > 1:
            raise ValueError(FORTRAN.format(path=self.path))

    def read(self, start: int, count: int) -> np.ndarray:
        """`count` rows from row `start` on, in memory of their own."""
        row = math.prod(self.shape[1:])
        at = self._start + start * row * self.dtype.itemsize
        found = np.fromfile(self.path, self.dtype, count * row, offset=at)
        if found.size != count * row:
            raise ValueError(CUT.format(path=self.path, found=found.size, start=start * row, count=count * row))
        return found.reshape(count, *self.shape[1:])


def _numpy(dtype: Any) -> np.dtype:
    return dtype.numpy if isinstance(dtype, dtypes.dtype) else np.dtype(dtype)


def position(index: Any, count: int) -> int:
    """A Python index as one from 0 on. IndexError if it is out of range."""
    found = int(index)
    if not -count <= found < count:
        raise IndexError(NO_SAMPLE.format(index=index, count=count))
    return found % count if count else 0


class TokenDataset(Dataset[tuple[Tensor, Tensor]]):
    """Windows of a file of tokens, with what follows each token: (x, y), two int64 tensors of `length`.

    path    a `.npy` file with one row of integers, or a file of bare integers (`tokens.tofile("train.bin")`)
    dtype   of a file without a header
    stride  from the start of a window to that of the next; as long as a window by default, 1 for each that there is

    ValueError for a file that holds no tokens, or for no positive `length` or `stride`.
    """

    def __init__(self, path: str | os.PathLike[str], length: int, dtype: Any = np.uint16, *, stride: int | None = None):
        stride = length if stride is None else stride
        if length < 1 or stride < 1:
            raise ValueError(f"length and stride should be positive, got length={length} and stride={stride}")
        self.file = ArrayFile(path, None if os.fspath(path).endswith(".npy") else dtype)
        if len(self.file.shape) != 1 or self.file.dtype.kind not in "ui":
            text = NO_TOKENS.format(path=self.file.path, dtype=self.file.dtype, shape=list(self.file.shape))
            raise ValueError(text)
        self.length, self.stride = length, stride

    def __len__(self) -> int:
        return max(0, (self.file.shape[0] - 1 - self.length) // self.stride + 1)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        tokens = self.file.read(position(index, len(self)) * self.stride, self.length + 1).astype(np.int64)
        return Tensor._wrap(tokens[:-1].copy()), Tensor._wrap(tokens[1:].copy())


class ArrayDataset(Dataset[Any]):
    """The rows of one array that lies in `.npy` files, one file after the other: a tensor for each row.

    ValueError for files whose rows differ in shape or dtype.
    """

    def __init__(self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]):
        several = not isinstance(paths, (str, os.PathLike))
        self.files = [ArrayFile(path) for path in (paths if several else [paths])]
        first = self.files[0]
        for file in self.files:
            found, expected = ((f.dtype, f.shape[1:]) for f in (file, first))
            if found != expected:
                raise ValueError(OTHER.format(path=file.path, found=found, first=first.path, expected=expected))
        self._ends = list(accumulate(file.shape[0] for file in self.files))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> Tensor:
        at = position(index, len(self))
        which = bisect_right(self._ends, at)
        row = self.files[which].read(at - (self._ends[which - 1] if which else 0), 1)[0]
        return Tensor._wrap(np.asarray(row))


ARROW = (".arrow", ".feather", ".ipc")
NO_COLUMN = "{path} has no column {name!r}; it has {found}"


class _Group(NamedTuple):
    """Some rows of a file: a row group of Parquet, a record batch of Arrow."""

    path: str
    number: int
    rows: int


class TableDataset(Dataset[dict[str, Any]]):
    """The rows of Parquet (`.parquet`) and Arrow (`.arrow`, `.feather`, `.ipc`) files: a dict {column: value} for each.

    columns  the names of those that are read; all by default
    groups   how many groups of rows are held, those used last: a sample costs the reading of its whole group, so a
             shuffled pass over large groups is slow. Such files are best written with groups of some thousand rows

    Lists of numbers are tensors. ModuleNotFoundError that names the extra without pyarrow; KeyError for an unknown
    column.
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        columns: Sequence[str] | None = None,
        *,
        groups: int = 4,
    ):
        several = not isinstance(paths, (str, os.PathLike))
        self.paths = [os.fspath(path) for path in (paths if several else [paths])]
        self.columns = None if columns is None else list(columns)
        self._most = groups
        self._forget()
        self._groups = [group for path in self.paths for group in self._groups_of(path)]
        self._ends = list(accumulate(group.rows for group in self._groups))

    def _forget(self) -> None:
        self._files: dict[str, Any] = {}
        self._held: OrderedDict[int, Any] = OrderedDict()
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_files", "_held")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _file(self, path: str) -> Any:
        if path not in self._files:
            if path.endswith(ARROW):
                library = require("pyarrow", "TableDataset", "data")
                self._files[path] = require("pyarrow.ipc", "TableDataset", "data").open_file(library.memory_map(path))
            else:
                self._files[path] = require("pyarrow.parquet", "TableDataset", "data").ParquetFile(path)
        return self._files[path]

    def _groups_of(self, path: str) -> list[_Group]:
        file = self._file(path)
        arrow = path.endswith(ARROW)
        names = (file.schema if arrow else file.schema_arrow).names
        for name in self.columns or ():
            if name not in names:
                raise KeyError(NO_COLUMN.format(path=path, name=name, found=names))
        if arrow:
            sizes = [file.get_batch(k).num_rows for k in range(file.num_record_batches)]
        else:
            sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        return [_Group(path, k, rows) for k, rows in enumerate(sizes)]

    def _rows(self, which: int) -> Any:
        """A table: the group numbered so."""
        if os.getpid() != self._process:  # a fork reads by itself: it would move the position in the parent's files
            self._forget()
        if which not in self._held:
            path, number, _ = self._groups[which]
            file = self._file(path)
            if path.endswith(ARROW):
                batch = file.get_batch(number)
                self._held[which] = batch if self.columns is None else batch.select(self.columns)
            else:
                self._held[which] = file.read_row_group(number, columns=self.columns)
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        self._held.move_to_end(which)
        return self._held[which]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> dict[str, Any]:
        at = position(index, len(self))
        which = bisect_right(self._ends, at)
        row = at - (self._ends[which - 1] if which else 0)
        [found] = self._rows(which).slice(row, 1).to_pylist()
        return {name: _value(value) for name, value in found.items()}


def _value(value: Any) -> Any:
    numbers = isinstance(value, list) and all(isinstance(x, (int, float, bool)) for x in value)
    return tensor(value) if numbers else value
