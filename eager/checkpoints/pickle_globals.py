"""What a `.pt` file may name, and what it means: a closed table, in PyTorch's words.

The names are those that PyTorch takes with `weights_only=True` for strided tensors, and those under which
PyTorch's `torch.save` keeps other plain values: slices, ranges, frozen sets, NumPy's arrays, generators.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from eager.checkpoints import safe_globals
from eager.checkpoints.description import DTYPES
from eager.checkpoints.mapped_arrays import check_bools, over
from eager.core import dtypes
from eager.core.devices import device
from eager.core.layouts import LAYOUTS
from eager.core.layouts import layout as Layout
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.rng.generator import Generator
from graphc.files.contents import printable
from graphc.files.pickled import Function, admit

NOT_ALLOWED = (
    "Unsupported global: GLOBAL {name} was not an allowed global by default. Remedy: save a state_dict, or another "
    "nest of tensors, numbers, texts, lists and dicts; or, if you trust this class or function, allow it by "
    "`torch.serialization.add_safe_globals([{name}])`; or, only if you trust who wrote the file, since it can run any "
    "code, load it with weights_only=False"
)
BLOCKED = "Trying to load unsupported GLOBAL {name} whose module {module} is blocked."
# storage type -> dtype; the name in PyTorch
STORAGES = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
}  # fmt: skip
BLOCKED_MODULES = ("sys", "os", "posix", "nt")
_PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}


@final
@dataclass(frozen=True, eq=False)
class StorageType:
    """The type of a storage. dtype: None for one of bytes, whose tensors say what they hold."""

    dtype: dtypes.dtype | None


@final
@dataclass(frozen=True, eq=False)
class Storage:
    """Memory in the file: flat, of bytes. `checks` is run when it has been filled."""

    memory: np.ndarray
    dtype: dtypes.dtype | None
    checks: list[Callable[[], None]]


@final
class NumpyDtype:
    """A NumPy dtype of a pickle, whose byte order comes when it is built."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype


def _whole_numbers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(type(n) is int for n in values):
        raise TypeError("sizes and strides are tuples of integers")
    return tuple(values)


def tensor_v2(storage: Any, offset: Any, size: Any, stride: Any, grad: Any = False, hooks: Any = None,
              metadata: Any = None) -> Tensor:  # fmt: skip
    """As `torch._utils._rebuild_tensor_v2`: what shows a typed storage. Sizes in elements."""
    if not isinstance(storage, Storage) or storage.dtype is None:
        raise TypeError("a tensor of something other than a storage with a dtype")
    return _tensor(storage, storage.dtype, offset, size, stride, grad, hooks, metadata)


def tensor_v3(storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, dtype: Any,
              metadata: Any = None) -> Tensor:  # fmt: skip
    """As `torch._utils._rebuild_tensor_v3`: with a dtype of its own, over a storage of bytes."""
    if not isinstance(storage, Storage) or not isinstance(dtype, dtypes.dtype):
        raise TypeError("a tensor of something other than a storage and a dtype")
    return _tensor(storage, dtype, offset, size, stride, grad, hooks, metadata)


def _tensor(storage: Storage, kind: dtypes.dtype, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any,
            metadata: Any) -> Tensor:  # fmt: skip
    if type(offset) is not int or type(grad) is not bool:
        raise TypeError("an offset is an integer, and requires_grad True or False")
    dtype, unit = kind.numpy, kind.itemsize
    steps = tuple(step * unit for step in _whole_numbers(stride))
    array = over(storage.memory, dtype, _whole_numbers(size), steps, offset * unit)
    storage.checks.append(lambda: check_bools(array, storage.memory)) if dtype.kind == "b" else None
    _check_hooks(hooks)
    tensor = Tensor._wrap(array)
    if metadata:
        tensor = _marked(tensor, metadata, storage)
    return tensor.requires_grad_() if grad else tensor


def _marked(tensor: Tensor, metadata: Any, storage: Storage) -> Tensor:
    """PyTorch has views that are conjugates or negatives of their memory; here they have memory of their own."""
    if not isinstance(metadata, dict) or not metadata.keys() <= {"conj", "neg"}:
        raise ValueError("a tensor with marks that are unknown")
    seen = tensor._array()
    own = np.empty(seen.shape, seen.dtype) if seen.size <= storage.memory.size else None
    if own is None:
        raise ValueError("a conjugate of a tensor that is larger than its memory")

    def fill() -> None:
        own[...] = np.conj(seen) if metadata.get("conj") else seen
        if metadata.get("neg"):
            np.negative(own, out=own)

    storage.checks.append(fill)
    return Tensor._wrap(own)


def _check_hooks(hooks: Any) -> None:
    if hooks:
        raise ValueError("a tensor with hooks, which are code")


def _layout(name: Any) -> Layout:
    """As `torch.serialization._get_layout`."""
    if type(name) is not str or (found := LAYOUTS.get(name.removeprefix("torch."))) is None:
        raise ValueError(f"no layout of sparse tensors: {name!r:.50}")
    return found


def sparse_tensor(layout: Any, parts: Any) -> Tensor:
    """As `torch._utils._rebuild_sparse_tensor`: (indices, values, size, coalesced), or those of a compressed layout."""
    from eager.sparse.construction import of_parts

    if not isinstance(layout, Layout) or type(parts) is not tuple:
        raise TypeError("a sparse tensor made of something else")
    count = 2 if layout.name == "sparse_coo" else 3
    tensors, size, rest = parts[:count], parts[count], parts[count + 1 :]
    if not all(isinstance(x, Tensor) and type(x._d) is np.ndarray for x in tensors) or not isinstance(size, tuple):
        raise TypeError("a sparse tensor made of something else")
    return of_parts(layout.name, tensors, _whole_numbers(size), count == 2 and rest[:1] == (True,))


def parameter(data: Any, grad: Any, hooks: Any, state: Any = None) -> Parameter:
    """As `torch._utils._rebuild_parameter` and `_rebuild_parameter_with_state`."""
    if not isinstance(data, Tensor) or type(grad) is not bool:
        raise TypeError("a parameter is made of a tensor, and True or False")
    _check_hooks(hooks)
    return _given(Parameter(data, grad), state)


def of_type(function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """As `torch._tensor._rebuild_from_type_v2`: a tensor with attributes."""
    if function not in _REBUILDS or kind not in _CLASSES or type(arguments) is not tuple:
        raise TypeError("a tensor that is made in another way")
    return _given(function.make(*arguments), state)


def _given(made: Tensor, state: Any) -> Any:
    """`made`, with the attributes that a file has for it; they cannot take the place of what a tensor is."""
    parts = state if isinstance(state, tuple) else (state,)
    for part in parts:
        if part is not None and not (isinstance(part, dict) and all(type(name) is str for name in part)):
            raise TypeError("attributes of a tensor that have no names")
        vars(made).update(part or {})
    return made


def _encoded(text: Any, encoding: Any) -> bytes:
    if type(text) is not str or encoding != "latin1":
        raise TypeError("bytes are kept as text in latin1")
    return text.encode("latin1")


def _bytearray(data: Any = b"") -> bytearray:
    if type(data) is not bytes:
        raise TypeError("a bytearray is made of bytes")
    return bytearray(data)


def _complex(real: Any, imaginary: Any) -> complex:
    if type(real) is not float or type(imaginary) is not float:
        raise TypeError("a complex number is made of two floats")
    return complex(real, imaginary)


def _set_of(kind: type) -> Callable[..., Any]:
    def made(members: Any = ()) -> Any:
        if not isinstance(members, (list, tuple, set)):
            raise TypeError(f"a {kind.__name__} is made of a list")
        admit(members, Counter())
        return kind(members)

    return made


def _of_integers(kind: Callable[..., Any]) -> Callable[..., Any]:
    def made(*parts: Any) -> Any:
        if not all(part is None or isinstance(part, int) for part in parts):
            raise TypeError(f"{kind.__name__} is made of integers")
        return kind(*parts)

    return made


def _slice(*parts: Any) -> slice:
    if len(parts) != 3 or not all(isinstance(part, (int, float, str, type(None))) for part in parts):
        raise TypeError("a slice is made of three numbers")
    return slice(*parts)


def _size(sizes: Any = ()) -> dtypes.Size:
    return dtypes.Size(_whole_numbers(sizes))


def _device(kind: Any, index: Any = None) -> device:
    if type(kind) is not str or not (index is None or type(index) is int):
        raise TypeError("a device is made of a text and a number")
    return device(kind, index)


def _ordered(items: Any = ()) -> OrderedDict[Any, Any]:
    if items != ():
        raise TypeError("an OrderedDict is filled item by item")
    return OrderedDict()


def _counter(counts: Any = None) -> Counter[Any]:
    if type(counts) is not dict:
        raise TypeError("a Counter is made of a dict")
    return Counter(counts)


def _numpy_dtype(code: Any, align: Any = False, copy: Any = True) -> NumpyDtype:
    if type(code) is not str or len(code) > 10:
        raise TypeError("a NumPy dtype is made of its code")
    dtype = np.dtype(code) if code[:1] in set("biufc?") else None
    if dtype is None or dtype.name not in DTYPES:
        raise ValueError(f"NumPy arrays of dtype {code[:20]!a} are not read")
    return NumpyDtype(dtype)


def _reconstruct(kind: Any, shape: Any, code: Any) -> np.ndarray:
    if kind is not NDARRAY or shape != (0,) or code != b"b":
        raise TypeError("an array that is made in another way")
    return np.empty(0, np.int8)


def _scalar(dtype: Any, data: Any) -> np.generic:
    if not isinstance(dtype, NumpyDtype) or type(data) is not bytes or len(data) != dtype.dtype.itemsize:
        raise TypeError("a NumPy scalar is made of a dtype and its bytes")
    array = np.frombuffer(data, dtype.dtype)
    check_bools(array, array.view(np.uint8))
    return array.astype(dtype.dtype.newbyteorder("="))[0]


def _generator(where: Any) -> Generator:
    if not isinstance(where, device) or where.type != "cpu":
        raise TypeError("a generator of another device than the CPU")
    return Generator()


def _no_call(*arguments: Any) -> Any:
    raise TypeError("this is not called in a file of PyTorch")


NDARRAY = Function("numpy.ndarray", _no_call)
_MADE: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered,
    "collections.Counter": _counter,
    "torch.Size": _size,
    "torch.device": _device,
    "torch._C.Generator": _generator,
    "_codecs.encode": _encoded,
    "builtins.bytes": lambda: b"",  # the empty one
    "builtins.bytearray": _bytearray,
    "builtins.complex": _complex,
    "builtins.set": _set_of(set),
    "builtins.frozenset": _set_of(frozenset),
    "builtins.slice": _slice,
    "builtins.range": _of_integers(range),
    "builtins.xrange": _of_integers(range),
    "torch._utils._rebuild_tensor": tensor_v2,
    "torch._utils._rebuild_tensor_v2": tensor_v2,
    "torch._utils._rebuild_tensor_v3": tensor_v3,
    "torch._utils._rebuild_parameter": parameter,
    "torch._utils._rebuild_sparse_tensor": sparse_tensor,
    "torch.serialization._get_layout": _layout,
    "torch._utils._rebuild_parameter_with_state": parameter,
    "torch._tensor._rebuild_from_type_v2": of_type,
    "torch.tensor._rebuild_from_type_v2": of_type,
    "torch.Tensor": _no_call,
    "torch.nn.parameter.Parameter": _no_call,
    "numpy.dtype": _numpy_dtype,
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
}
ALLOWED: dict[str, Any] = {
    **{name: Function(name, make) for name, make in _MADE.items()},
    **{f"{home}.{name}Storage": StorageType(DTYPES[dtype])
       for home in ("torch", "torch.cuda") for name, dtype in STORAGES.items()},
    **{f"torch.{name}": dtype for name, dtype in DTYPES.items()},
    "torch.storage.UntypedStorage": StorageType(None),
    "torch.UntypedStorage": StorageType(None),
    "numpy.ndarray": NDARRAY,
}  # fmt: skip
_REBUILDS = [ALLOWED[name] for name in ALLOWED if name.startswith("torch._utils.")]
_CLASSES = [ALLOWED["torch.Tensor"], ALLOWED["torch.nn.parameter.Parameter"]]


def named(module: str, name: str) -> Any:
    """What a file means by a global. ValueError, as PyTorch has it, for one that is not in the table."""
    module = _PYTHON_2.get(module, module)
    full = f"{module}.{name}"
    if (value := ALLOWED.get(full) or safe_globals.allowed(full)) is not None:
        return value
    if module in BLOCKED_MODULES:
        raise ValueError(BLOCKED.format(name=printable(full), module=module))
    raise ValueError(NOT_ALLOWED.format(name=printable(full.removeprefix("builtins."))))


def build(later: list[Callable[[], None]], target: Any, state: Any) -> None:
    """Give state to an OrderedDict (its attributes), a NumPy dtype (its byte order), an array or a generator.

    What needs the content of tensors is added to `later`.
    """
    if type(target) is OrderedDict and isinstance(state, dict):
        if not all(type(name) is str and not hasattr(OrderedDict, name) for name in state):
            raise ValueError("attributes of an OrderedDict that it has itself")
        vars(target).update(state)
    elif type(target) is NumpyDtype and isinstance(state, tuple) and len(state) == 8:
        if state[1] not in ("<", ">", "|", "=") or any(part is not None for part in state[2:5]):
            raise ValueError("a NumPy dtype with fields")
        target.dtype = target.dtype.newbyteorder(state[1])
    elif type(target) is np.ndarray and isinstance(state, tuple) and len(state) == 5:
        _build_array(target, *state[1:])
    elif type(target) is Generator and isinstance(state, tuple) and len(state) == 3 and isinstance(state[2], Tensor):
        later.append(lambda: target.set_state(state[2]) and None)
    elif not safe_globals.build(target, state):
        raise TypeError(f"Can only build OrderedDict, NumPy arrays and generators, but got {type(target)}")


def _build_array(array: np.ndarray, shape: Any, dtype: Any, fortran: Any, data: Any) -> None:
    if not isinstance(dtype, NumpyDtype) or type(data) is not bytes or type(fortran) is not bool or array.size:
        raise TypeError("an array whose state is another")
    shape = _whole_numbers(shape)
    size = dtype.dtype.itemsize
    for n in shape:
        size *= n
    if min(shape, default=0) < 0 or size != len(data) or len(shape) > 64:
        raise ValueError(f"an array of shape {shape} that has {len(data):,} bytes")
    raw = np.frombuffer(data, dtype.dtype)
    check_bools(raw, raw.view(np.uint8))
    native = dtype.dtype.newbyteorder("=")
    state: Any = (1, shape, native, fortran, raw.astype(native).tobytes())  # numbers, checked
    array.__setstate__(state)
