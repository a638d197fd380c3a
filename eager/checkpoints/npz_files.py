"""NumPy's `.npz` files: a dict of arrays, each a member of a zip file; read without pickles, as it is stored."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from eager.checkpoints.description import DTYPES
from eager.checkpoints.memory import check_bools
from eager.core.tensor import Tensor
from graphc.files import zipped
from graphc.files.contents import Refuse

ONLY_ARRAYS = "a .npz file holds a dict of tensors by name, and {place} is {kind}. Remedy: save to a .pt file"
DAMAGED = "it is no array that is read here ({what})"
_SUFFIX = ".npy"
_HEADER = 10_000  # bytes of a member that describe it
_VERSIONS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def is_npz(members: Mapping[str, zipped.Member]) -> bool:
    """Whether a zip file with these members is one of NumPy's."""
    return bool(members) and all(name.endswith(_SUFFIX) for name in members)


def contents_of(value: Any) -> list[tuple[str, bytes]]:
    """The members of a file that holds a dict of tensors or arrays. TypeError for anything else."""
    if not isinstance(value, Mapping):
        raise TypeError(ONLY_ARRAYS.format(place="obj", kind=type(value).__name__))
    contents: list[tuple[str, bytes]] = []
    for name, member in value.items():
        array = member._array() if isinstance(member, Tensor) else member
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
    head = io.BytesIO(data[:_HEADER])
    try:
        version = np.lib.format.read_magic(head)
        if version not in _VERSIONS:
            raise ValueError(f"format {version}")
        shape, fortran, dtype = _VERSIONS[version](head, max_header_size=_HEADER)
        if dtype.hasobject or dtype.names or dtype.name not in DTYPES:
            raise ValueError(f"of dtype {dtype}")
        flat = np.frombuffer(data, dtype, offset=head.tell())
        check_bools(flat, flat.view(np.uint8))
        native = flat.astype(dtype.newbyteorder("="), copy=False)
        if min(shape, default=0) < 0:
            raise ValueError(f"of shape {shape}")
        return native.reshape(shape, order="F" if fortran else "C")
    # what a broken header makes of NumPy's parser, which evaluates literals
    except (ArithmeticError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError) as error:
        raise refuse(DAMAGED.format(what=str(error)[:200]), name) from None
