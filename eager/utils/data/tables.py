"""Datasets in Parquet and Arrow files, read by pyarrow, a group of rows at a time."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from eager.functional.data import tensor
from eager.utils.data.dataset import Dataset
from eager.utils.data.files import position
from graphc.errors import require

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
