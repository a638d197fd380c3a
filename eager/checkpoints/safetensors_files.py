"""The safetensors format: a header of JSON, which says where each tensor lies in the data behind it.

    8 bytes, the header's length; {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}; data

The header is checked before anything is allocated: every byte of the data belongs to one tensor, and each tensor has as
many as its shape and dtype need.
"""

from __future__ import annotations

import math
import os
from typing import IO, Any, NamedTuple

import numpy as np

from eager.checkpoints.description import DTYPES, METADATA
from eager.core.state import separate
from graphc.files.contents import Refuse, exactly
from graphc.files.contents import mapped as memory_map
from graphc.files.json_text import Limits, parsed
from graphc.files.schema import Record, Row, Table, Text, Tuple, Whole

LIMITS = Limits(2**26, 4, 4_000_000)
NUMPY_OF = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "C64": "complex64",
}  # fmt: skip
DAMAGED = "it is damaged, or no safetensors file ({what})"
UNKNOWN = "it has tensors of type {kind}"
_ENTRY = Record({"dtype": Text(most=20), "shape": Row(Whole(0), most=64), "data_offsets": Tuple((Whole(0), Whole(0)))})
_METADATA = Table(Text(most=LIMITS.size), Text(most=LIMITS.size))


class StoredTensor(NamedTuple):
    """A tensor in a file: its dtype and shape, and the bytes that it takes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    size: int


def header(start: bytes, file: IO[bytes], refuse: Refuse) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    """The tensors in the order in which they lie in the file, and the metadata. `start` has been read of it already.

    Leaves `file` where the data begin. Raises what `refuse` makes of (problem, place) unless all of it is sound.
    """

    def damaged(problem: str, place: str) -> Exception:
        return refuse(DAMAGED.format(what=problem), place)

    start += exactly(file, 8 - len(start), damaged, "its length") if len(start) < 8 else b""
    length = int.from_bytes(start[:8], "little")
    if length > LIMITS.size:
        raise damaged(f"a header of {length:,} bytes, at most {LIMITS.size:,} are read", "")
    text = start[8:] + exactly(file, length + 8 - len(start), damaged, "its header")
    table = parsed(bytes(text), LIMITS, damaged)
    if not isinstance(table, dict):
        raise damaged("its header is no object", "")
    metadata = table.pop(METADATA, {})
    _METADATA.check(metadata, METADATA, damaged)
    for name, tensor in table.items():
        _ENTRY.check(tensor, name, damaged)
    stored: dict[str, StoredTensor] = {}
    at = 0
    for name, tensor in sorted(table.items(), key=lambda item: item[1]["data_offsets"]):
        if tensor["dtype"] not in NUMPY_OF:
            raise refuse(UNKNOWN.format(kind=tensor["dtype"]), name)
        dtype, shape = DTYPES[NUMPY_OF[tensor["dtype"]]].numpy, tuple(tensor["shape"])
        begin, end = tensor["data_offsets"]
        if begin != at or end - begin != math.prod(shape) * dtype.itemsize:
            raise damaged(f"{dtype}{list(shape)} cannot lie from byte {begin} to {end}, behind byte {at}", name)
        stored[name], at = StoredTensor(dtype, shape, end - begin), end
    return stored, metadata


def read(file: IO[bytes], stored: dict[str, StoredTensor], refuse: Refuse) -> dict[str, np.ndarray]:
    """The tensors, in memory of their own."""

    def damaged(problem: str, place: str) -> Exception:
        return refuse(DAMAGED.format(what=problem), place)

    found = {name: _array(e, exactly(file, e.size, damaged, name), refuse, name) for name, e in stored.items()}
    if file.read(1):
        raise damaged("there is more behind its last tensor", "")
    return found


def mapped(file: IO[bytes], stored: dict[str, StoredTensor], refuse: Refuse) -> dict[str, np.ndarray]:
    """The tensors in the file itself: what is written to them stays in memory."""
    begin, total = file.tell(), sum(tensor.size for tensor in stored.values())
    if os.fstat(file.fileno()).st_size != begin + total:
        raise refuse(DAMAGED.format(what=f"it has not the {total:,} bytes of data that its header tells of"), "")
    data = memory_map(file)
    found: dict[str, np.ndarray] = {}
    for name, tensor in stored.items():
        found[name] = _array(tensor, separate(data[begin : begin + tensor.size]), refuse, name)
        begin += tensor.size
    return found


def _array(tensor: StoredTensor, memory: Any, refuse: Refuse, name: str) -> np.ndarray:
    try:
        return np.ndarray(tensor.shape, tensor.dtype, memory)
    except ValueError as error:  # a shape without elements that NumPy has no number for
        raise refuse(DAMAGED.format(what=str(error)), name) from None
