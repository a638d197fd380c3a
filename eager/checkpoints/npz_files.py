"""NumPy's `.npz` files: a dict of arrays, each a member of a zip file; read without pickles, as it is stored."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from eager.checkpoints.description import DTYPES
from eager.checkpoints.mapped_arrays import check_bools
from eager.core.tensor import Tensor
from graphc.files import zipped
from graphc.files.contents import Refuse, printable

ONLY_ARRAYS = "a .npz file holds a dict of tensors by name, and {place} is {kind}. Remedy: save to a .pt file"
DAMAGED = "it is no array that is read here ({what})"
_SUFFIX = ".npy"
_MAGIC = b"\x93NUMPY"
_LENGTHS = {b"\1\0": "<H", b"\2\0": "<I"}  # format version -> how the length of the header is written
_HEADER = re.compile(
    rb" *\{'descr': '([<>|=][biufc][0-9]{1,2})', 'fortran_order': (True|False), 'shape': \(([0-9, ]{0,1000})\),? *\}\s*"
)
_DIGITS = 20  # of a size


def is_npz(members: Mapping[str, zipped.Member]) -> bool:
    """Whether a zip file with these members is one of NumPy's."""
    return bool(members) and all(name.endswith(_SUFFIX) for name in members)


def contents_of(value: Any) -> list[tuple[str, bytes]]:
    """The members of a file that holds a dict of tensors or arrays. TypeError for anything else."""
    if not isinstance(value, Mapping):
        raise TypeError(ONLY_ARRAYS.format(place="obj", kind=type(value).__name__))
    contents: list[tuple[str, bytes]] = []
    for name, member in value.items():
        array = member._read() if isinstance(member, Tensor) else member
        if not isinstance(array, np.ndarray) or type(name) is not str or array.dtype.kind not in "biufc":
            raise TypeError(ONLY_ARRAYS.format(place=f"obj[{name!r}]", kind=type(member).__name__))
        data = io.BytesIO()
        np.lib.format.write_array(data, array, allow_pickle=False)
        contents.append((name + _SUFFIX, data.getvalue()))
    return contents


def read(file: IO[bytes], members: Mapping[str, zipped.Member], refuse: Refuse) -> dict[str, np.ndarray]:
    """The arrays by name. Raises what `refuse` makes unless each is of numbers, and has as many bytes as it says."""
    return {name.removesuffix(_SUFFIX): _array(file, members[name], name, refuse) for name in members}


def _array(file: IO[bytes], member: zipped.Member, name: str, refuse: Refuse) -> np.ndarray:
    data = zipped.content(file, member, name, refuse)
    try:
        return _parsed(data)
    except (struct.error, ValueError) as error:
        raise refuse(DAMAGED.format(what=error), printable(name)) from None


def _parsed(data: bytearray) -> np.ndarray:
    """The array of a `.npy` file: magic, version, length of the header, header, numbers."""
    form = _LENGTHS.get(bytes(data[6:8]))
    if not data.startswith(_MAGIC) or form is None:
        raise ValueError("its first bytes are others")
    begin = 8 + struct.calcsize(form)
    end = begin + struct.unpack_from(form, data, 8)[0]
    found = _HEADER.fullmatch(data, begin, end)
    if found is None:
        raise ValueError("not of numbers, or its header is another")
    dtype, fortran, sizes = np.dtype(found[1].decode()), found[2] == b"True", found[3].replace(b" ", b"").split(b",")
    if dtype.name not in DTYPES or max(map(len, sizes)) > _DIGITS:
        raise ValueError(f"of dtype {dtype}")
    shape = tuple(int(size) for size in sizes if size)
    flat = np.frombuffer(data, dtype, offset=end)
    check_bools(flat, flat.view(np.uint8))
    return flat.astype(dtype.newbyteorder("="), copy=False).reshape(shape, order="F" if fortran else "C")
