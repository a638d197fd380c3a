"""Tensor: one type for the user, whatever lies beneath.

`_d` is an ndarray, or a `StandIn`: a Symbol under a trace, a `Deferred` result of a compiled program. `_n` is the tape
node (None: no gradient wanted); `_g` the accumulated gradient.

The operators and most methods are installed by `eager.surface`, from the op registry and from the tables of names.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from eager.core import dtypes, state, tape
from eager.core.devices import CPU, device
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.meta import NO_NUMPY
from eager.core.missing import MissingMethod
from eager.core.overriding import DisableTorchFunctionSubclass, Overrides, of_class, unconverted
from eager.core.placed import data_of, device_of, is_elsewhere, is_placed
from eager.core.sparse import Sparse, _tensor_type, hooks
from eager.core.stand_ins import SEALED_LEAF, SEALED_WRITE, Deferred, Sealed
from eager.core.state import grad_enabled
from eager.core.ufunc_writes import write
from eager.core.views import check_unrecorded_write
from eager.core.warned import warn_once
from graphc.ops.dtypes import is_inexact
from graphc.ops.rules import c_name, torch_name
from graphc.ops.steps import REPEATED

if TYPE_CHECKING:  # what eager.surface adds: a stub, made by `python -m tests.stubs`
    from eager.core.tensor_methods import TensorMethods  # pyright: ignore[reportMissingModuleSource]
else:
    TensorMethods = object

_new = object.__new__

NUMPY_OF_GRAD = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
GRAD_NUMBER = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using "
    "tensor.detach() first."
)
NOT_IN = "Tensor.__contains__ only supports Tensor or scalar, but you passed in a {}."
CHANGE_FLAG = "you can only change requires_grad flags of leaf variables.{hint}"
USE_DETACH = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
    "var_no_grad = var.detach()."
)
GRAD_DTYPE = (
    "attempting to assign a gradient with dtype '{given}' to a tensor with grad_dtype '{wanted}'. The gradient must "
    "match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute "
    "with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor "
    "and its gradient may break downstream systems that assume they match."
)
FLOAT_ONLY = "only Tensors of floating point dtype can require gradients"
INEXACT_ONLY = "only Tensors of floating point and complex dtype can require gradients"
IN_TRANSFORM = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of "
    "a function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
    "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)
LEAF_IN_PLACE = "a leaf Variable that requires grad is being used in an in-place operation."


class Tensor(TensorMethods, metaclass=Overrides):
    """A multi-dimensional array of one dtype, with automatic differentiation. As `torch.Tensor`."""

    __slots__ = ("__dict__", "__weakref__", "_d", "_g", "_n", "_v")

    _d: Any
    _n: Any
    _g: Any
    _v: Any

    def __new__(cls, *data: Any, **options: Any) -> Any:
        """A `cls` of sizes or data, as `torch.Tensor(...)` makes it; an `__init__` of a subclass finds it made."""
        made = _new(cls)
        Tensor.__init__(made, *data, **options)
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What functions do with instances of a subclass: what they do with tensors, with results of that subclass.

        func: the function called. types: the classes among its arguments that have a handler. NotImplemented if one of
        them is no base of `cls`. As `torch.Tensor.__torch_function__`.
        """
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result if cls is Tensor or func in unconverted else of_class(result, cls)

    @staticmethod
    def _make_subclass(kind: Any, data: Tensor, require_grad: bool = False) -> Any:
        """A `kind` of the values of `data`, in the same memory, without history. As `torch.Tensor._make_subclass`."""
        with DisableTorchFunctionSubclass():
            made = data.detach().as_subclass(kind)
            return made.requires_grad_() if require_grad else made

    @staticmethod
    def _wrap(array: Any) -> Tensor:
        """A Tensor over `array`, not copied, that requires no grad."""
        t = state.tracked_new(Tensor) if state.tracking else _new(Tensor)
        t._d = array
        t._n = None
        if state.closed:
            current_interpreter().created(t)
        return t

    def _array(self) -> np.ndarray:
        """The values, as an ndarray that shares this tensor's memory. Raises CaptureError under a trace."""
        data = self._d
        return data if data.__class__ is np.ndarray else data.force(self)

    def _read(self) -> np.ndarray:
        """The values, in memory of their own if they lie on a device."""
        data = self._d
        return data if data.__class__ is np.ndarray else data.read(self)

    @property
    def shape(self) -> dtypes.Size:
        """The number of elements along each dim."""
        return dtypes.size_of(self._d.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.BY_NUMPY[self._dtype()]

    def _values_for(self, purpose: str, *, python: bool = False) -> np.ndarray:
        """`_array`, for a result whose shape depends on the values, or (`python`) for a Python number.

        `purpose` is told to the stand-in that has none.
        """
        if self._d.__class__ is not np.ndarray:
            self._d.check_values(self, purpose, python)
        return self._known()

    def _known(self) -> np.ndarray:
        """`_array`, of which Python code decides something: a program that is being traced holds for these values."""
        array = self._read()
        if state.closed and (found := current_interpreter().values_read(self)) is not None:
            return found
        return array

    def _dtype(self) -> np.dtype:
        data = self._d
        return data.dtype if data.dtype is not None else data.numpy_dtype

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self._d.shape)

    @property
    def device(self) -> device:
        """Where the elements are: the CPU, a device such as "cuda:0", or "meta" for a tensor without values."""
        data = self._d
        if data.__class__ is np.ndarray:
            return CPU
        return current_interpreter().where(self) if data.captured else device_of(self)

    def __len__(self) -> int:
        if not self._d.shape:
            raise TypeError("len() of a 0-d tensor")
        return self._d.shape[0]

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. May be set, of a leaf of floating dtype."""
        return self._n is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if not isinstance(flag, bool):
            raise RuntimeError("requires_grad must be a bool")
        self.requires_grad_(flag, _message=INEXACT_ONLY)

    def requires_grad_(
        self,
        requires_grad: bool = True,
        *,
        _message: str = FLOAT_ONLY,
    ) -> Tensor:
        """Change whether operations on this leaf are recorded. RuntimeError for a non-leaf or an integer tensor."""
        if requires_grad and _message is FLOAT_ONLY and state.active_transforms():
            raise RuntimeError(IN_TRANSFORM)
        if not isinstance(requires_grad, bool):
            kind = dtypes.type_name(requires_grad)
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
        if not self.is_leaf:
            if requires_grad:
                return self
            raise RuntimeError(CHANGE_FLAG.format(hint=USE_DETACH))
        if requires_grad:
            if not is_inexact(self._dtype()):
                raise RuntimeError(_message)
            if self._d.__class__ is Sealed and state.made_in_inference() is None:
                raise RuntimeError(SEALED_LEAF)
        if self._d.__class__ is Sparse:
            self._n = self._d.values.requires_grad_(requires_grad)._n
        elif requires_grad is (self._n is None or tape.is_dead_end(self._n)):
            self._n = tape.new_leaf(self) if requires_grad else None
            current_interpreter().leaf_changed(self)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor: `backward` gives leaves their `grad`."""
        node = self._n
        return node is None or (isinstance(node, list) and (tape.is_leaf(node) or tape.is_dead_end(node)))

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is. As `torch.Tensor.output_nr`."""
        node = self._n
        return node[tape.ABOUT].number or 0 if isinstance(node, list) else 0

    @property
    def grad(self) -> Tensor | None:
        """The gradient that calls of `backward` have accumulated, of the same shape and dtype; None before the first.

        Raises RuntimeError when set to a tensor of another shape or dtype.
        """
        if not state.closed and (grad := getattr(self, "_g", None)) is not None:
            return grad  # at once: optimizers ask at every step
        if self._d.__class__ is Sparse:
            found = self._d.values.grad
            return None if found is None else hooks["gradient"](self._d, found)
        return current_interpreter().get_grad(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            self._check_gradient(value)
        if self._d.__class__ is Sparse:
            self._d.values.grad = None if value is None else hooks["in_pattern"](value, self._d)
        else:
            current_interpreter().set_grad(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _check_gradient(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value._d.shape != self._d.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value._d.shape)}' to a tensor of size "
                f"'{list(self._d.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        if value._dtype() != self._dtype():
            raise RuntimeError(GRAD_DTYPE.format(given=c_name(value._dtype()), wanted=torch_name(self._dtype())))

    def _add_gradient(self, g: Any) -> None:
        """Accumulate `g` into this tensor, which is some leaf's `.grad`, in place."""
        if self._d.__class__ is Sparse:
            self._d = np.add(g, self._d)  # dense, if `g` is
            return
        array = self._writable()
        write(np.add, array, array, g)
        state.note_write(array)

    def _seal(self) -> None:
        """Inference mode, in which this tensor was made, ends. A view of a tensor from before stays what it is."""
        about = getattr(self, "_v", None)
        if isinstance(about, tuple) and about[0]._d.__class__ is not Sealed:
            return
        if self._n is None and (self._d.__class__ is np.ndarray or self._d.__class__ is Deferred):
            self._d = Sealed(self._array())

    def is_inference(self) -> bool:
        """Whether this tensor was made in inference mode. As `torch.Tensor.is_inference`."""
        made = state.made_in_inference()
        if made is None or self._d.__class__ is Sealed:
            return self._d.__class__ is Sealed
        about = getattr(self, "_v", None)
        owner = about[0] if isinstance(about, tuple) else self
        return owner._d.__class__ is Sealed or any(t is owner for t in made.live())

    def _writable(self, repeated: bool = False) -> np.ndarray:
        """The values as an ndarray that may be written; read-only memory is copied first.

        RuntimeError if elements share a place in memory (`expand` gives such views), unless they may be `repeated`.
        """
        array = self._d
        if array.__class__ is not np.ndarray:
            array = self._array()
            if self._d.__class__ is Sealed and state.made_in_inference() is None:
                raise RuntimeError(SEALED_WRITE)
        if self._n is None and getattr(self, "_v", None).__class__ is tuple:
            check_unrecorded_write(self)
        if not array.flags.writeable:
            if not repeated:
                check_places(array)
            view = state.writeable(array)
            if view is None:
                view = self._d = array.copy()
            return view
        return array

    @property
    def data(self) -> Tensor:
        """The same values, sharing memory, without history; autograd does not see what is written to it."""
        data = self._d
        if data.__class__ is not np.ndarray or not on_arrays():
            return self.detach()
        return Tensor._wrap(state.separate_view(data))

    @data.setter
    def data(self, value: Tensor) -> None:
        current_interpreter().set_data(self, value)

    def _show(self, value: Tensor, name: str) -> Tensor:
        """Show what `value` shows, in the same memory and with its history. `name`: the function that does so."""
        current_interpreter().show(self, value, name)
        return self

    @property
    def _version(self) -> int:
        if self._d.__class__ is Sealed:
            raise RuntimeError("Inference tensors do not track version counter.")
        return state.version_of(data_of(self))

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The values as an ndarray that shares memory. As `torch.Tensor.numpy`.

        RuntimeError if the tensor requires grad and gradients are recorded, unless `force`; TypeError for bfloat16,
        which NumPy does not have.
        """
        if self._n is not None and not force and grad_enabled():
            raise RuntimeError(NUMPY_OF_GRAD)
        if is_elsewhere(self) and (self.device.type == "meta" or not force):
            what = "a DTensor" if self.device.mesh is not None else f"{self.device} device type tensor"
            raise TypeError(NO_NUMPY.format(what))
        if self._d.__class__ is Sparse:
            raise TypeError(f"can't convert {self._d.kind} layout tensor to numpy. Use Tensor.to_dense() first.")
        array = self._known()
        if array.dtype.kind == "V":
            raise TypeError(f"Got unsupported ScalarType {torch_name(array.dtype)}")
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __jax_array__(self) -> Any:
        """A jax.Array of the values, for functions of JAX. RuntimeError if the tensor requires grad."""
        if self._n is not None:
            raise RuntimeError(NUMPY_OF_GRAD)
        if is_placed(self):
            return self._d.array  # which never changes
        return sys.modules["jax.numpy"].array(self._known())  # which asks for it; a copy: this tensor may be written

    def tolist(self) -> Any:
        """The values as nested Python lists (a number, for a 0-d tensor)."""
        return self._known().tolist()

    def item(self) -> int | float | bool:
        """The value of a one-element tensor as a Python number. Raises RuntimeError for any other size."""
        data = self._d
        if data.__class__ is not np.ndarray and math.prod(data.shape) == 1 and (found := data.number(self)) is not None:
            return found  # not known before the program that is being traced runs
        if state.closed and (found := current_interpreter().number_written(self)) is not None:
            return found
        array = self._values_for("item", python=True)
        if array.size != 1:
            raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
        return array.item()

    def _number(self, kind: type) -> Any:
        array = self._values_for("item", python=True)
        if array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if array.dtype.kind == "c" and kind is not complex:
            if array.imag.any():
                what = {float: "double", int: "int64_t"}[kind]
                raise RuntimeError(f"value cannot be converted to type {what} without overflow")
            array = array.real
        if self._n is not None and kind is not int and grad_enabled():
            warn_once(GRAD_NUMBER)
        return kind(array.item())

    def __float__(self) -> float:
        return self._number(float)

    def __int__(self) -> int:
        return self._number(int)

    def __complex__(self) -> complex:
        return self._number(complex)

    def __index__(self) -> int:
        if self._dtype().kind not in "iub" or math.prod(self._d.shape) != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return self._number(int)

    def __bool__(self) -> bool:
        data = self._d
        if data.__class__ is not np.ndarray:
            data = data.truth(self)
        elif state.closed:
            data = self._known()
        if data.size != 1:
            what = "no values" if not data.size else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(data.item())

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, (Tensor, bool, int, float, complex, np.generic)):
            raise RuntimeError(NOT_IN.format(type(element)))
        return bool((self == element).any())  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return (
            format(self.item(), spec)
            if type(self) is Tensor and not self._d.shape and self.device.type != "meta"
            else object.__format__(self, spec)
        )

    def __dir__(self) -> list[str]:
        names = (name for name in object.__dir__(self) if name[0] != "_" or name.startswith("__"))
        return [name for name in names if not isinstance(vars(Tensor).get(name), MissingMethod)]

    def __hash__(self) -> int:
        return id(self)

    def __copy__(self) -> Tensor:
        if current_interpreter().immediate:
            found: Any = self.__reduce__()
            made = found[0](*found[1])
            for state in found[2:]:
                made.__dict__.update(state)
            return made
        copied = self.detach()
        copied.__class__ = type(self)
        return copied if self._n is None else copied.requires_grad_()


_tensor_type.append(Tensor)


def repeats(array: np.ndarray) -> bool:
    """Whether elements share a place in memory, as those of `expand` do."""
    return any(step == 0 and n > 1 for step, n in zip(array.strides, array.shape, strict=True))


def check_places(array: np.ndarray) -> None:
    """Raise PyTorch's RuntimeError if elements repeat in memory."""
    if repeats(array):
        raise RuntimeError(REPEATED)


def check_in_place(t: Tensor) -> None:
    """Raise PyTorch's RuntimeError if `t` is a leaf that requires grad, and gradients are being recorded."""
    if t._n is not None and grad_enabled() and t.is_leaf and not tape.is_dead_end(t._n):
        raise RuntimeError(LEAF_IN_PLACE)
