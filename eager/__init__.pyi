# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""A define-by-run engine on NumPy with PyTorch's API: `import eager as torch`.

Functions of pointwise ops come from the op registry, all others by the tables in `eager.surface.names`, each imported
when it is first asked for.
"""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from eager import accelerator as accelerator, amp as amp, autograd as autograd, backends as backends, compiler as compiler, cpu as cpu, cuda as cuda, distributed as distributed, distributions as distributions, fft as fft, func as func, futures as futures, fx as fx, hub as hub, jit as jit, library as library, linalg as linalg, masked as masked, mps as mps, multiprocessing as multiprocessing, nn as nn, onnx as onnx, optim as optim, overrides as overrides, profiler as profiler, quasirandom as quasirandom, random as random, return_types as return_types, serialization as serialization, signal as signal, sparse as sparse, special as special, testing as testing, types as types, utils as utils, version as version, xpu as xpu
from eager._C import PyTorchFileReader as PyTorchFileReader, TensorType as TensorType
from eager.amp.autocast_mode import autocast as autocast
from eager.amp.grad_scaler import GradScaler as GradScaler
from eager.autograd.custom_ops import Operations
from eager.compiling.scripts import ScriptFunction as ScriptFunction, ScriptModule as ScriptModule
from eager.core.devices import device as device
from eager.core.dtypes import Size as Size, dtype as dtype
from eager.core.grad_mode import enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad, set_grad_enabled as set_grad_enabled
from eager.core.layouts import layout as layout, memory_format as memory_format
from eager.core.limits import finfo as finfo, iinfo as iinfo
from eager.core.overriding import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from eager.core.parameter import Parameter as Parameter
from eager.core.tensor import Tensor as Tensor
from eager.functional.symbolic import SymBool as SymBool, SymFloat as SymFloat, SymInt as SymInt
from eager.rng.generator import Generator as Generator
from eager.storage import TypedStorage as TypedStorage, UntypedStorage as UntypedStorage
from eager.surface.errors import AcceleratorError as AcceleratorError, OutOfMemoryError as OutOfMemoryError
from eager.types import Device, FileLike, Number
from graphc.ops.spec import Op
from numpy import ndarray
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar, overload
from typing_extensions import TypeIs

_P = ParamSpec("_P")
_R = TypeVar("_R")

BFloat16Tensor: type[Tensor]
BoolTensor: type[Tensor]
ByteTensor: type[Tensor]
CharTensor: type[Tensor]
DoubleTensor: type[Tensor]
FloatTensor: type[Tensor]
HalfTensor: type[Tensor]
IntTensor: type[Tensor]
LongTensor: type[Tensor]
ShortTensor: type[Tensor]
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; of a complex number, its modulus."""

def abs_(input: Tensor) -> Tensor:
    """`input.abs_(...)`. In-place form of `abs`. As `torch.abs_`."""

def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; of a complex number, its modulus."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in [0, pi]."""

def acos_(input: Tensor) -> Tensor:
    """`input.acos_(...)`. In-place form of `acos`. As `torch.acos_`."""

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""

def acosh_(input: Tensor) -> Tensor:
    """`input.acosh_(...)`. In-place form of `acosh`. As `torch.acosh_`."""

def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int | None] | None) -> Tensor:
    """The means of windows that cover (N, C, *) or (C, *) in `output_size` steps. As `torch.nn.functional.adaptive_avg_pool1d`."""

def adaptive_max_pool1d(input: Tensor, output_size: _int | Sequence[_int | None] | None) -> tuple[Tensor, Tensor]:
    """(maxima, their places). As `torch.adaptive_max_pool1d`."""

def add(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """input + alpha * other. As `torch.add`."""

def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (the sum of the products of two batches of matrices). As `torch.addbmm`."""

def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """input + value * tensor1 / tensor2. As `torch.addcdiv`. RuntimeError for a quotient of integers."""

def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """input + value * tensor1 * tensor2. As `torch.addcmul`."""

def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2). As `torch.addmm`."""

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat @ vec). As `torch.addmv`."""

def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
    """`input.addmv_(...)`. In-place form of `addmv`. As `torch.addmv_`."""

def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2). As `torch.addr`, which promotes dtypes."""

def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dims. As `torch.adjoint`."""

def affine_grid_generator(theta: Tensor, size: Sequence[_int], align_corners: _bool) -> Tensor:
    """As `torch.affine_grid_generator`; see `nn.functional.affine_grid`."""

def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `alias` shows. As `torch.alias_copy`."""

def all(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """Whether every element over `dim` is nonzero, as bool, or as uint8 for uint8. As `torch.all`."""

def allclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
    """Whether `isclose` holds everywhere. As `torch.allclose`."""

def alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """See `nn.functional`. As `torch.alpha_dropout`."""

def alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In place; see `nn.functional`. As `torch.alpha_dropout_`."""

def amax(input: Tensor, dim: _int | Sequence[_int] | None = (), keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The largest element over `dim`; ties share the gradient. As `torch.amax`. IndexError for an empty reduction."""

def amin(input: Tensor, dim: _int | Sequence[_int] | None = (), keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The smallest element over `dim`; ties share the gradient. As `torch.amin`. IndexError for an empty reduction."""

def aminmax(input: Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: Tensor | None = None) -> return_types.aminmax:
    """The smallest and the largest element, over `dim` or all, as a named tuple (min, max). As `torch.aminmax`.

    RuntimeError or IndexError for an empty reduction, NotImplementedError for complex numbers.
    """

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of complex numbers to the positive axis; 0 or pi for real ones. As `torch.angle`."""

def any(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """Whether some element over `dim` is nonzero, as bool, or as uint8 for uint8. As `torch.any`."""

@overload
def arange(end: Number, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """start, start + step, ... below `end`; int64 for integers. As `torch.arange`; RuntimeError for a bad step.

    In a dtype of integers start and step lose what is behind the point; how many there are is told by the numbers
    given, in int64 by what is left of them.
    """
@overload
def arange(start: Number, end: Number, step: Number = 1, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in [0, pi]."""

def arccos_(input: Tensor) -> Tensor:
    """`input.arccos_(...)`. In-place form of `acos`. As `torch.arccos_`."""

def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""

def arccosh_(input: Tensor) -> Tensor:
    """`input.arccosh_(...)`. In-place form of `acosh`. As `torch.arccosh_`."""

def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in [-pi/2, pi/2]."""

def arcsin_(input: Tensor) -> Tensor:
    """`input.arcsin_(...)`. In-place form of `asin`. As `torch.arcsin_`."""

def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""

def arcsinh_(input: Tensor) -> Tensor:
    """`input.arcsinh_(...)`. In-place form of `asinh`. As `torch.arcsinh_`."""

def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in [-pi/2, pi/2]."""

def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, input), in [-pi, pi]."""

def arctan_(input: Tensor) -> Tensor:
    """`input.arctan_(...)`. In-place form of `atan`. As `torch.arctan_`."""

def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""

def arctanh_(input: Tensor) -> Tensor:
    """`input.arctanh_(...)`. In-place form of `atanh`. As `torch.arctanh_`."""

def are_deterministic_algorithms_enabled() -> _bool:
    """Whether only deterministic algorithms are wanted."""

def argmax(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The index of the first extreme element along `dim`, in the flattened tensor if None. As `torch.argmax`."""

def argmin(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The index of the first extreme element along `dim`, in the flattened tensor if None. As `torch.argmin`."""

def argsort(input: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The indices that sort `input` along `dim`. As `torch.argsort`."""

def argwhere(input: Tensor) -> Tensor:
    """The indices of the nonzero elements, a row each. As `torch.argwhere`."""

def as_strided(input: Tensor, size: Sequence[_int], stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
    """A view with any strides into the memory of `input`. As `torch.as_strided`.

    Elements that `input` itself does not show get no gradient. RuntimeError for places outside of the memory.
    """

def as_strided_(input: Tensor, size: Sequence[_int], stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
    """`input.as_strided_(...)`. In-place form of `as_strided`: `self` shows the same memory in that shape. As `torch.as_strided_`."""

def as_strided_copy(input: Tensor, size: Sequence[_int], stride: _int | Sequence[_int], storage_offset: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `as_strided` shows. As `torch.as_strided_copy`."""

def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[_int], stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
    """`input` with what `as_strided` shows of it replaced by `src`. As `torch.as_strided_scatter`."""

def as_tensor(data: Any, *, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """`data` as a tensor, without a copy where it is a tensor, or an array of NumPy or PyTorch, of that dtype; an array
    of JAX, which never changes, is copied. As `torch.as_tensor`.
    """

def asarray(obj: Any, *, dtype: dtype | None = None, device: Device = None, copy: _bool | None = None, requires_grad: _bool | None = None) -> Tensor:
    """`obj` (a tensor, an array, a buffer, a sequence or a number) as a tensor. As `torch.asarray`.

    Memory is shared where dtype and kind allow it, unless `copy`; ValueError if it must be and `copy` is False.
    """

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in [-pi/2, pi/2]."""

def asin_(input: Tensor) -> Tensor:
    """`input.asin_(...)`. In-place form of `asin`. As `torch.asin_`."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""

def asinh_(input: Tensor) -> Tensor:
    """`input.asinh_(...)`. In-place form of `asinh`. As `torch.asinh_`."""

def at_least(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input, at least `other`."""

def at_most(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input, at most `other`."""

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in [-pi/2, pi/2]."""

def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, input), in [-pi, pi]."""

def atan_(input: Tensor) -> Tensor:
    """`input.atan_(...)`. In-place form of `atan`. As `torch.atan_`."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""

def atanh_(input: Tensor) -> Tensor:
    """`input.atanh_(...)`. In-place form of `atanh`. As `torch.atanh_`."""

@overload
def atleast_1d(tensor: Tensor, /) -> Tensor:
    """A view with at least 1 dims, of each of the tensors. As `torch.atleast_1d`."""
@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...

@overload
def atleast_2d(tensor: Tensor, /) -> Tensor:
    """A view with at least 2 dims, of each of the tensors. As `torch.atleast_2d`."""
@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...

@overload
def atleast_3d(tensor: Tensor, /) -> Tensor:
    """A view with at least 3 dims, of each of the tensors. As `torch.atleast_3d`."""
@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...

def autocast_decrement_nesting() -> _int:
    """Count one context less. Returns how many are left. As `torch.autocast_decrement_nesting`."""

def autocast_increment_nesting() -> _int:
    """Count one more context that is entered. Returns how many. As `torch.autocast_increment_nesting`."""

def avg_pool1d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> Tensor:
    """The mean of each window of (N, C, *) or (C, *), * 1 sizes; padding counts as zeros. As `torch.nn.functional.avg_pool1d`."""

def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2). As `torch.baddbmm`."""

def bartlett_window(window_length: _int, periodic: _bool = True, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """A triangle. As `torch.bartlett_window`."""

def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool) -> Tensor:
    """As `torch.batch_norm`; see `nn.functional.batch_norm`."""

def bernoulli(input: Tensor, p: _float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Zeros and ones of the shape and dtype of `input`, which holds the probabilities unless `p` is given.

    Raises RuntimeError for a probability outside [0, 1], NotImplementedError for an integer `input`.
    """

bfloat16: dtype
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x^T W y + bias for inputs (*, n) and (*, m) and weight (out, n, m). As `torch.nn.functional.bilinear`."""

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: _int = 0) -> Tensor:
    """As `torch.binary_cross_entropy_with_logits`; see `nn.functional`."""

def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
    """How often each number from 0 on occurs, or the sum of its `weights`. As `torch.bincount`.

    A graph is for one largest number.
    """

def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials, each of probability `prob`, succeed. As `torch.binomial`."""

def bitwise_and(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input and other, bit by bit."""

def bitwise_left_shift(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The bits of `input`, `other` places up."""

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each bit inverted; of bools, the logical not."""

def bitwise_or(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input or other, bit by bit."""

def bitwise_right_shift(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The bits of `input`, `other` places down."""

def bitwise_xor(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input xor other, bit by bit."""

def blackman_window(window_length: _int, periodic: _bool = True, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N). As `torch.blackman_window`."""

def block_diag(*tensors: Tensor) -> Tensor:
    """The matrices (vectors and numbers count as rows) along the diagonal, zeros elsewhere. As `torch.block_diag`."""

def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches (B, N, M) and (B, M, P) of matrices. As `torch.bmm`."""

bool: dtype
def broadcast_shapes(*shapes: _int | Sequence[_int]) -> Size:
    """The shape that `shapes` broadcast to. As `torch.broadcast_shapes`. RuntimeError if they do not."""

def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape; those that have it, themselves. As `torch.broadcast_tensors`."""

def broadcast_to(input: Tensor, size: Sequence[_int]) -> Tensor:
    """`input` expanded to `size`. As `torch.broadcast_to`."""

def bucketize(input: Tensor | Number | _complex, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor:
    """The index of the bucket between `boundaries` that each value falls into. As `torch.bucketize`."""

def can_cast(from_: dtype, to: dtype) -> _bool:
    """Whether the category of `from_` is no higher than that of `to`. As `torch.can_cast`."""

def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element from each 1-d tensor, one a row. As `torch.cartesian_prod`."""

def cat(tensors: Sequence[Tensor], dim: _int = 0, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The tensors one after another along `dim`, in their promoted dtype. As `torch.cat`.

    Raises RuntimeError unless their other sizes agree, ValueError for no tensors. Empty 1-d tensors fit anything.
    """

def cdist(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: str | None = 'use_mm_for_euclid_dist_if_necessary') -> Tensor:
    """The p-norm distances of all rows of `x1` (B, P, M) to all of `x2` (B, R, M), as (B, P, R). As `torch.cdist`.

    `compute_mode` says whether Euclidean distances come from a matrix product: by default if P or R exceeds 25.
    """

cdouble: dtype
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each number as a whole one, rounded up."""

def ceil_(input: Tensor) -> Tensor:
    """`input.ceil_(...)`. In-place form of `ceil`. As `torch.ceil_`."""

def celu(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """As `torch.celu`; see `nn.functional.celu`."""

def celu_(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """`celu` in place. As `torch.nn.functional.celu_`."""

cfloat: dtype
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the cheapest order. As `torch.chain_matmul`."""

chalf: dtype
def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """The channels of (N, C, *), dealt out from `groups` groups. As `torch.nn.functional.channel_shuffle`."""

channels_last: memory_format
channels_last_3d: memory_format
def cholesky(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The factor L of L L^H, or L^H. As `torch.cholesky`."""

def cholesky_inverse(L: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A from its Cholesky factor. As `torch.cholesky_inverse`."""

def cholesky_solve(B: Tensor, L: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """X with AX = B from the Cholesky factor of A. As `torch.cholesky_solve`."""

def chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of equal size along `dim`, the last perhaps smaller. As `torch.chunk`."""

def clamp(input: Tensor, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None, *, out: Tensor | None = None) -> Tensor:
    """`input` limited to [min, max], numbers or tensors; nan gives nan. As `torch.clamp`: gradient 1 at a bound.

    RuntimeError without bounds, and for a number that the dtype does not hold; NotImplementedError for complex numbers.
    """

def clamp_(input: Tensor, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None) -> Tensor:
    """`input.clamp_(...)`. Limit `self` to [min, max]. As `torch.Tensor.clamp_`. As `torch.clamp_`."""

def clamp_max(input: Tensor, max: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """`input`, at most `max`. As `torch.clamp_max`."""

def clamp_max_(input: Tensor, max: Tensor | Number | _complex) -> Tensor:
    """`input.clamp_max_(...)`. In-place form of `clamp_max`. As `torch.clamp_max_`."""

def clamp_min(input: Tensor, min: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """`input`, at least `min`. As `torch.clamp_min`."""

def clamp_min_(input: Tensor, min: Tensor | Number | _complex) -> Tensor:
    """`input.clamp_min_(...)`. In-place form of `clamp_min`. As `torch.clamp_min_`."""

def clear_autocast_cache() -> None:
    """Forget the casts of weights that this thread has made. As `torch.clear_autocast_cache`."""

def clip(input: Tensor, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None, *, out: Tensor | None = None) -> Tensor:
    """`input` limited to [min, max], numbers or tensors; nan gives nan. As `torch.clamp`: gradient 1 at a bound.

    RuntimeError without bounds, and for a number that the dtype does not hold; NotImplementedError for complex numbers.
    """

def clip_(input: Tensor, min: Tensor | Number | _complex | None = None, max: Tensor | Number | _complex | None = None) -> Tensor:
    """`input.clip_(...)`. Limit `self` to [min, max]. As `torch.Tensor.clamp_`. As `torch.clip_`."""

def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """A copy through which gradients flow. As `torch.clone`."""

def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side, vectors as columns. As `torch.column_stack`."""

def combinations(input: Tensor, r: _int = 2, with_replacement: _bool = False) -> Tensor:
    """All combinations of `r` elements of a 1-d tensor, one a row. As `torch.combinations`."""

@overload
def compile(model: _R, *, fullgraph: _bool = False, dynamic: _bool | None = None, backend: str | Callable[..., Any] | None = None, mode: str | None = None, options: dict[str, Any] | None = None, name: str | None = None, disable: _bool = False, recompile_limit: _int | None = None, isolate_recompiles: _bool = False, shapes_spec: Any = None) -> _R:
    """A function or module that does what `model` does, by compiled programs. As `torch.compile`; also a decorator.

    fullgraph  True: what cannot be captured as one program raises CaptureError; else it warns, and runs eagerly
    dynamic    whether sizes are symbols; see `graphc.compile`, also for what is guarded
    backend    "inductor" (XLA), "aot_eager" or "numpy" (NumPy without XLA), "auto", "eager" (nothing is compiled)
    mode       any of PyTorch's; XLA has no such choice
    options    those of `graphc.compile`: device, level, strict, without, mesh and shardings

    `recompile_limit` bounds how often a function is traced. InvalidBackend, RuntimeError for unknown names.
    """
@overload
def compile(model: None = None, *, fullgraph: _bool = False, dynamic: _bool | None = None, backend: str | Callable[..., Any] | None = None, mode: str | None = None, options: dict[str, Any] | None = None, name: str | None = None, disable: _bool = False, recompile_limit: _int | None = None, isolate_recompiles: _bool = False, shapes_spec: Any = None) -> Callable[[_R], _R]: ...

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from their parts. As `torch.complex`. RuntimeError unless both have one floating dtype."""

complex128: dtype
complex32: dtype
complex64: dtype
def concat(tensors: Sequence[Tensor], dim: _int = 0, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The tensors one after another along `dim`, in their promoted dtype. As `torch.cat`.

    Raises RuntimeError unless their other sizes agree, ValueError for no tensors. Empty 1-d tensors fit anything.
    """

def concatenate(tensors: Sequence[Tensor], dim: _int = 0, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The tensors one after another along `dim`, in their promoted dtype. As `torch.cat`.

    Raises RuntimeError unless their other sizes agree, ValueError for no tensors. Empty 1-d tensors fit anything.
    """

def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`. As `torch.cond`; see `graphc.cond`.

    pred: a bool, a number or a tensor with one element. RuntimeError for other arguments.

    >>> import eager as torch
    >>> torch.cond(torch.tensor(True), lambda x: x.sin(), lambda x: x.cos(), (torch.zeros(2),))
    tensor([0., 0.])
    """

def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor itself. As `torch.conj`, but computed at once."""

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate; a real tensor itself. As `torch.conj_physical`."""

def conj_physical_(input: Tensor) -> Tensor:
    """`input.conj_physical_(...)`. In-place form of `conj_physical`. As `torch.conj_physical_`."""

def constant_pad_nd(input: Tensor, pad: Sequence[_int], value: _float = 0) -> Tensor:
    """As `torch.constant_pad_nd`; see `nn.functional.pad`."""

contiguous_format: memory_format
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] | str = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> Tensor:
    """Cross-correlation of input (N, C, *) or (C, *), * 1 sizes, with weight (O, C / groups, *); `padding` is an int, a tuple, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit. As `torch.nn.functional.conv1d`."""

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] | str = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> Tensor:
    """Cross-correlation of input (N, C, *) or (C, *), * 2 sizes, with weight (O, C / groups, *); `padding` is an int, a tuple, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit. As `torch.nn.functional.conv2d`."""

def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] | str = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1) -> Tensor:
    """Cross-correlation of input (N, C, *) or (C, *), * 3 sizes, with weight (O, C / groups, *); `padding` is an int, a tuple, "valid" or "same". Raises RuntimeError for sizes or dtypes that do not fit. As `torch.nn.functional.conv3d`."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: _int = 0) -> Tensor:
    """Convolution of input (time, batch, C) with weight (k, C, O). As `torch.conv_tbc`."""

def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> Tensor:
    """The transpose of `conv1d` in its input (N, C, *) or (C, *), with weight (C, O / groups, *). As `torch.nn.functional.conv_transpose1d`."""

def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> Tensor:
    """The transpose of `conv2d` in its input (N, C, *) or (C, *), with weight (C, O / groups, *). As `torch.nn.functional.conv_transpose2d`."""

def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1) -> Tensor:
    """The transpose of `conv3d` in its input (N, C, *) or (C, *), with weight (C, O / groups, *). As `torch.nn.functional.conv_transpose3d`."""

def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: _int | Sequence[_int], padding: _int | Sequence[_int], dilation: _int | Sequence[_int], transposed: _bool, output_padding: _int | Sequence[_int], groups: _int) -> Tensor:
    """A convolution of as many dims as `weight` has, or its transpose. As `torch.convolution`."""

def copysign(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """|input| with the sign of `other`."""

def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables (rows) over observations (columns). As `torch.corrcoef`."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine of radians."""

def cos_(input: Tensor) -> Tensor:
    """`input.cos_(...)`. In-place form of `cos`. As `torch.cos_`."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine."""

def cosh_(input: Tensor) -> Tensor:
    """`input.cosh_(...)`. In-place form of `cosh`. As `torch.cosh_`."""

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, reduction: _int = 0) -> Tensor:
    """As `torch.cosine_embedding_loss`; see `nn.functional.cosine_embedding_loss`."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`, norms at least `eps`. As in PyTorch."""

def count_nonzero(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor:
    """How many elements over `dim` are nonzero, as int64. As `torch.count_nonzero`."""

def cov(input: Tensor, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariances of variables (rows) over observations (columns). As `torch.cov`.

    `fweights`: how often each observation was made; `aweights`: how much it counts. RuntimeError for bools, more than
    two dims, and weights of other sizes, dtypes or signs.
    """

def cross(input: Tensor, other: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross products of vectors of length 3 along `dim`, the first of that size if None. As `torch.cross`."""

def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Sequence[_int], target_lengths: Sequence[_int], blank: _int = 0, reduction: _int = 0, zero_infinity: _bool = False) -> Tensor:
    """As `torch.ctc_loss`; see `nn.functional.ctc_loss`."""

def cummax(input: Tensor, dim: _int, *, out: Tensor | None = None) -> return_types.cummax:
    """(values, indices) of the largest element so far along `dim`, the last of equals. As `torch.cummax`."""

def cummin(input: Tensor, dim: _int, *, out: Tensor | None = None) -> return_types.cummin:
    """(values, indices) of the smallest element so far along `dim`, the last of equals. As `torch.cummin`."""

def cumprod(input: Tensor, dim: _int, dtype: dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """The running product along `dim`, in `dtype` if given. As `torch.cumprod`."""

def cumsum(input: Tensor, dim: _int, dtype: dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """The running sum along `dim`, in `dtype` if given. As `torch.cumsum`."""

def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | _complex | None = None, dim: _int = -1) -> Tensor:
    """The running integral of samples `y` along `dim`. As `torch.cumulative_trapezoid`; errors as `trapezoid`."""

default_generator: Generator
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each angle times 0.0174533. RuntimeError for complex numbers. As `torch.deg2rad`."""

def deg2rad_(input: Tensor) -> Tensor:
    """`input.deg2rad_(...)`. In-place form of `deg2rad`. As `torch.deg2rad_`."""

def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of square matrices. As `torch.linalg.det`."""

def detach(input: Tensor) -> Tensor:
    """The same values, sharing memory, without history. As `torch.Tensor.detach`."""

def detach_(input: Tensor) -> Tensor:
    """`input.detach_(...)`. Forget the history of `self`. As `torch.Tensor.detach_`. As `torch.detach_`."""

def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `detach` shows. As `torch.detach_copy`."""

def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """A vector as a diagonal matrix; of a matrix, its diagonal. As `torch.diag`."""

def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """Matrices, in dims `dim1` and `dim2`, with `input`'s last dim on their diagonal. As `torch.diag_embed`."""

def diagflat(input: Tensor, offset: _int = 0) -> Tensor:
    """A matrix with all elements of `input` on its diagonal. As `torch.diagflat`."""

def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """The diagonal of dims `dim1` and `dim2` as the last dim. As `torch.diagonal`."""

def diagonal_copy(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `diagonal` shows. As `torch.diagonal_copy`."""

def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """`input` with the diagonal of two dims replaced by `src`. As `torch.diagonal_scatter`."""

def diff(input: Tensor, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along `dim`, of bools whether they differ. As `torch.diff`.

    RuntimeError for a negative n, a 0-d tensor, or a `prepend` or `append` of other sizes.
    """

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of the logarithm of the gamma function."""

def dist(input: Tensor, other: Tensor, p: _float = 2) -> Tensor:
    """The p-norm of input - other. As `torch.dist`. RuntimeError for integers."""

def div(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""

def divide(input: Tensor, other: Tensor | Number | _complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""

def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inner product of two vectors. As `torch.dot`."""

double: dtype
def dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """See `nn.functional`. As `torch.dropout`."""

def dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In place; see `nn.functional`. As `torch.dropout_`."""

def dsmm(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices, or of a matrix and a vector, of which one is sparse, or both.

    Dense, but of two sparse matrices sparse, in the layout of the first. RuntimeError for sizes that do not fit, other
    numbers of dims, and different dtypes.
    """

def dsplit(input: Tensor, indices_or_sections: _int | Sequence[_int], /) -> tuple[Tensor, ...]:
    """`tensor_split` along dim 2, in equal parts. As `torch.dsplit`."""

def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors joined along the third dim. As `torch.dstack`."""

e: _float
def eig(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed, as `torch.eig` is. RuntimeError."""

@overload
def einsum(equation: str, /, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Sums of products in Einstein's notation: `einsum("ij,jk->ik", x, y)` or `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    As `torch.einsum`: an ellipsis stands for broadcast dims, a repeated letter for a diagonal, and without "->" the
    output has the letters that occur once, sorted. Raises RuntimeError as PyTorch does.
    """
@overload
def einsum(*operands: Tensor | Sequence[_int]) -> Tensor: ...

def embedding(weight: Tensor, indices: Tensor, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> Tensor:
    """As `torch.embedding`; see `nn.functional.embedding`."""

def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: _float, norm_type: _float) -> Tensor:
    """Shorten the rows at `indices` that are longer than `max_norm`, in place. As `torch.embedding_renorm_`."""

@overload
def empty(*size: _int, memory_format: memory_format | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """Memory that is not set to anything. As `torch.empty`."""
@overload
def empty(size: Sequence[_int], *, memory_format: memory_format | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

def empty_like(input: Tensor, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, memory_format: memory_format | None = None) -> Tensor:
    """Memory that is not set to anything, in the shape and dtype of `input`. As `torch.empty_like`."""

def empty_permuted(size: Sequence[_int], physical_layout: Sequence[_int], *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Memory that is not set to anything, dims in memory in the order `physical_layout`. As `torch.empty_permuted`."""

def empty_strided(size: Sequence[_int], stride: _int | Sequence[_int], *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Memory that is not set to anything, with the given steps between elements. As `torch.empty_strided`."""

def eq(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input == other."""

def equal(input: Tensor, other: Tensor) -> _bool:
    """Whether the two have the same shape and elements. As `torch.equal`."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function."""

def erf_(input: Tensor) -> Tensor:
    """`input.erf_(...)`. In-place form of `erf`. As `torch.erf_`."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 - erf(input)."""

def erfc_(input: Tensor) -> Tensor:
    """`input.erfc_(...)`. In-place form of `erfc`. As `torch.erfc_`."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the error function."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power `input`."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power `input`."""

def exp2_(input: Tensor) -> Tensor:
    """`input.exp2_(...)`. In-place form of `exp2`. As `torch.exp2_`."""

def exp_(input: Tensor) -> Tensor:
    """`input.exp_(...)`. In-place form of `exp`. As `torch.exp_`."""

def expand_copy(input: Tensor, size: Sequence[_int], *, implicit: _bool = False, out: Tensor | None = None) -> Tensor:
    """A copy of what `expand` shows. As `torch.expand_copy`."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(input) - 1, exact near 0."""

def expm1_(input: Tensor) -> Tensor:
    """`input.expm1_(...)`. In-place form of `expm1`. As `torch.expm1_`."""

def eye(n: _int, m: _int | None = None, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """Ones on the diagonal of an (n, m) matrix of zeros. As `torch.eye`."""

def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero point (C,) for each place along `axis` (of size C).

    As `torch.fake_quantize_per_channel_affine`.
    """

def fake_quantize_per_tensor_affine(input: Tensor, scale: _float | Tensor, zero_point: _int | Tensor, quant_min: _int, quant_max: _int) -> Tensor:
    """`input` rounded to `scale` * (integer - `zero_point`), with integers from `quant_min` to `quant_max`.

    scale, zero_point: numbers, or tensors of one element. RuntimeError if the bounds are the wrong way round, or do
    not hold the zero point. As `torch.fake_quantize_per_tensor_affine`.
    """

def feature_alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """See `nn.functional`. As `torch.feature_alpha_dropout`."""

def feature_alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In place; see `nn.functional`. As `torch.feature_alpha_dropout_`."""

def feature_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """See `nn.functional`. As `torch.feature_dropout`."""

def feature_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In place; see `nn.functional`. As `torch.feature_dropout_`."""

def fill(input: Tensor, value: Tensor | Number | _complex) -> Tensor:
    """A tensor like `input` that holds `value`, a number or a 0-d tensor, everywhere. As `torch.fill`."""

def fill_(input: Tensor, value: Tensor | Number | _complex) -> Tensor:
    """`input.fill_(...)`. Set every element to `value`, a number or a 0-d tensor. As `torch.Tensor.fill_`. As `torch.fill_`."""

def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each number as a whole one, rounded towards 0."""

def fix_(input: Tensor) -> Tensor:
    """`input.fix_(...)`. In-place form of `trunc`. As `torch.fix_`."""

def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """Dims `start_dim` to `end_dim` made one; a 0-d tensor becomes 1-d. As `torch.flatten`."""

@overload
def flip(input: Tensor, dims: Sequence[_int]) -> Tensor:
    """The elements in reverse order along `dims`. As `torch.flip`."""
@overload
def flip(input: Tensor, *dims: _int) -> Tensor: ...

def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order. As `torch.fliplr`. RuntimeError for fewer than two dims."""

def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order. As `torch.flipud`. RuntimeError for a 0-d tensor."""

float: dtype
float16: dtype
float32: dtype
float64: dtype
float8_e4m3fn: dtype
float8_e4m3fnuz: dtype
float8_e5m2: dtype
float8_e5m2fnuz: dtype
float8_e8m0fnu: dtype
def float_power(input: Tensor | Number | _complex, exponent: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input ** exponent, computed in float64 or complex128. As `torch.float_power`."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each number as a whole one, rounded down."""

def floor_(input: Tensor) -> Tensor:
    """`input.floor_(...)`. In-place form of `floor`. As `torch.floor_`."""

def floor_divide(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input / other, rounded down."""

def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `maximum`, but a number wins over nan. As `torch.fmax`."""

def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `minimum`, but a number wins over nan. As `torch.fmin`."""

def fmod(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input modulo other, with the sign of `input`."""

def fork_rng(devices: Iterable[Any] | None = None, enabled: _bool = True, **ignored: Any) -> AbstractContextManager[None]:
    """A context that restores the state of the default generator at its end. As `torch.random.fork_rng`."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What is behind the point, with the sign of the number. As `torch.frac`. NotImplementedError for integers."""

def frac_(input: Tensor) -> Tensor:
    """`input.frac_(...)`. In-place form of `frac`. As `torch.frac_`."""

def frexp(input: Tensor, *, out: Tensor | None = None) -> return_types.frexp:
    """Mantissas in [0.5, 1) and exponents of 2, as a named tuple. As `torch.frexp`. RuntimeError for integers."""

def frobenius_norm(input: Tensor, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The Frobenius norm over `dim`. As `torch.frobenius_norm`."""

def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: _bool | None = None) -> Tensor:
    """A tensor that shares memory with `ext_tensor`, an array of any library. As `torch.from_dlpack`.

    BufferError if its memory cannot be shared.
    """

def from_numpy(ndarray: ndarray) -> Tensor:
    """A tensor that shares memory with `ndarray`. As `torch.from_numpy`. TypeError for anything else."""

def frombuffer(buffer: Any, *, dtype: dtype, count: _int = -1, offset: _int = 0, requires_grad: _bool = False) -> Tensor:
    """A 1-d tensor in the memory of `buffer`, from byte `offset` on. As `torch.frombuffer`.

    ValueError if `count` elements (all, if negative) are not there.
    """

def full(size: Sequence[_int], fill_value: Number | _complex | Tensor, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """`fill_value` everywhere, in its own dtype if None is given. As `torch.full`."""

def full_like(input: Tensor, fill_value: Tensor | Number | _complex, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, memory_format: memory_format | None = None) -> Tensor:
    """`fill_value` in the shape and dtype of `input`. As `torch.full_like`."""

def gather(input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """result[i][j] = input[index[i][j]][j] for dim 0, and so on. As `torch.gather`. RuntimeError out of bounds."""

def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor."""

def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """`input.gcd_(...)`. In-place form of `gcd`. As `torch.gcd_`."""

def ge(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input >= other."""

def geqrf(input: Tensor, *, out: Tensor | None = None) -> return_types.geqrf:
    """(a, tau): Householder's reflections that make R of `input`. As `torch.geqrf`. Eager only."""

def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix of all products of two vectors. As `torch.outer`."""

def get_autocast_cpu_dtype() -> dtype:
    """Deprecated: use `torch.get_autocast_dtype('cpu')`."""

def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype of autocast. As `torch.get_autocast_dtype`. RuntimeError for a device type that has no autocast."""

def get_autocast_gpu_dtype() -> dtype:
    """Deprecated: use `torch.get_autocast_dtype('cuda')`."""

def get_autocast_ipu_dtype() -> dtype:
    """Deprecated: use `torch.get_autocast_dtype('ipu')`."""

def get_autocast_xla_dtype() -> dtype:
    """Deprecated: use `torch.get_autocast_dtype('xla')`."""

def get_default_device() -> device:
    """Where tensors are made: the CPU, or "meta"."""

def get_default_dtype() -> dtype:
    """The dtype of new floating tensors. As `torch.get_default_dtype`."""

def get_deterministic_debug_mode() -> _int:
    """0: all algorithms, 1: others than deterministic ones warn, 2: they raise."""

def get_device(self: Tensor) -> _int:
    """The index of the device; -1 on the CPU, which has none. As `torch.Tensor.get_device`."""

def get_float32_matmul_precision() -> str:
    """"highest", "high" or "medium", as it was set."""

def get_num_interop_threads() -> _int:
    """1: operations do not run side by side."""

def get_num_threads() -> _int:
    """How many threads a matrix product may use. As `torch.get_num_threads`."""

def get_printoptions() -> dict[str, Any]:
    """The options in force, as keyword arguments for `set_printoptions`."""

def get_rng_state() -> Tensor:
    """The state of the default generator as a uint8 tensor."""

def gradient(input: Tensor, *, spacing: Number | Sequence[Number | Tensor] | Tensor = 1, dim: _int | Sequence[_int] | None = None, edge_order: _int = 1) -> tuple[Tensor, ...]:
    """The slopes of samples along each of `dim`, by central differences. As `torch.gradient`.

    `spacing`: the distance of samples, one for each dim, or 1-d tensors of coordinates. RuntimeError for an
    `edge_order` other than 1 and 2, too few samples, or another number of spacings than dims.
    """

def greater(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input > other."""

def greater_equal(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input >= other."""

def grid_sampler(input: Tensor, grid_: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """As `torch.grid_sampler`; see `nn.functional.grid_sample`."""

def grid_sampler_2d(input: Tensor, grid_: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """As `torch.grid_sampler`; see `nn.functional.grid_sample`."""

def grid_sampler_3d(input: Tensor, grid_: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """As `torch.grid_sampler`; see `nn.functional.grid_sample`."""

def group_norm(input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enabled: _bool = True) -> Tensor:
    """As `torch.group_norm`; see `nn.functional.group_norm`."""

def gru(input: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    """(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> (output, *state), or with (data, batch_sizes) of a packed sequence in place of input. As `torch.gru`."""

def gru_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of the layer. As `torch.gru_cell`."""

def gt(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input > other."""

half: dtype
def hamming_window(window_length: _int, periodic: _bool = True, alpha: _float = 0.54, beta: _float = 0.46, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """alpha - beta cos(2 pi n / N). As `torch.hamming_window`."""

def hann_window(window_length: _int, periodic: _bool = True, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """(1 - cos(2 pi n / N)) / 2. As `torch.hann_window`."""

def hard_least(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input, at least `other`."""

def hard_most(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input, at most `other`."""

def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """input where outside [-lambd, lambd], else 0. As `torch.nn.functional.hardshrink`."""

def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below 0, 1 above, `values` at 0. As `torch.heaviside`, which has no derivative.

    RuntimeError unless both have one dtype, which is not complex.
    """

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: _float = 1.0, reduction: _int = 0) -> Tensor:
    """As `torch.hinge_embedding_loss`; see `nn.functional.hinge_embedding_loss`."""

def histc(input: Tensor, bins: _int = 100, min: _float = 0, max: _float = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements lie in each of `bins` equal bins from `min` to `max` (from the least to the greatest element if
    they are equal), in the dtype of `input`. As `torch.histc`.
    """

def histogram(input: Tensor, bins: _int | Sequence[_int] | Tensor | Sequence[Tensor] = 100, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, out: Tensor | None = None) -> return_types.histogram:
    """(hist, bin_edges): the elements, or their weights, in each bin, the last one with its right edge.

    `bins`: a number, or the edges. `density`: divided by the total and by the widths of the bins. As `torch.histogram`.
    """

def histogramdd(input: Tensor, bins: _int | Sequence[_int] | Tensor | Sequence[Tensor], range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> return_types.histogramdd:
    """(hist, bin_edges) of points, whose coordinates lie along the last dim, in a grid of bins.

    `bins`: their number, a number for each coordinate, or the edges for each. As `torch.histogramdd`.
    """

def hsplit(input: Tensor, indices_or_sections: _int | Sequence[_int], /) -> tuple[Tensor, ...]:
    """`tensor_split` along dim 1, in equal parts. As `torch.hsplit`."""

def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`mat1 @ mat2` of a COO and a strided matrix, in COO: the rows that are not empty, dense. As `torch.hspmm`."""

def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors joined along the second dim, vectors along their only one. As `torch.hstack`."""

def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sqrt(input**2 + other**2), without overflow."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def i0_(input: Tensor) -> Tensor:
    """`input.i0_(...)`. In-place form of `i0`. As `torch.i0_`."""

def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized lower incomplete gamma function. As `torch.igamma`: no gradient of `input`."""

def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized upper incomplete gamma function. As `torch.igammac`: no gradient of `input`."""

def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view. As `torch.imag`. RuntimeError for a real tensor."""

def index_add(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """`input` with alpha * source added to the slices along `dim` that `index` lists. As `torch.index_add`."""

def index_copy(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with the slices along `dim` that `index` lists replaced by those of `source`. As `torch.index_copy`."""

def index_fill(input: Tensor, dim: _int, index: Tensor, value: Tensor | Number | _complex) -> Tensor:
    """`input` with the slices along `dim` that `index` lists set to `value`. As `torch.index_fill`."""

def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """`input` with `values` written (or added) at input[indices]. As `torch.index_put`."""

def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """`input.index_put_(...)`. Write `values` to (or add them to) self[indices]. As `torch.Tensor.index_put_`. As `torch.index_put_`."""

def index_reduce(input: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """`input` with the slices of `source` along `dim` reduced into those that `index` lists. As `torch.index_reduce`.

    `reduce`: "prod", "mean", "amax" or "amin". IndexError for an index out of range.
    """

def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of `input` along `dim` that `index` lists. As `torch.index_select`. IndexError out of bounds."""

inf: _float
def initial_seed() -> _int:
    """The seed of the default generator."""

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products summed over the last dims of both. As `torch.inner`."""

def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool) -> Tensor:
    """As `torch.instance_norm`; see `nn.functional.instance_norm`."""

int: dtype
int1: dtype
int16: dtype
int2: dtype
int3: dtype
int32: dtype
int4: dtype
int5: dtype
int6: dtype
int64: dtype
int7: dtype
int8: dtype
def integer_pow(input: Tensor | Number | _complex, exponent: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input to the power of a whole number."""

def inverse(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices. As `torch.linalg.inv`. LinAlgError for a singular matrix."""

def is_anomaly_check_nan_enabled() -> _bool:
    """Whether anomaly mode looks for nan. As `torch.is_anomaly_check_nan_enabled`."""

def is_anomaly_enabled() -> _bool:
    """Whether anomaly mode is on. As `torch.is_anomaly_enabled`."""

def is_autocast_cache_enabled() -> _bool:
    """Whether casts of weights are kept until autocast ends. As `torch.is_autocast_cache_enabled`."""

def is_autocast_cpu_enabled() -> _bool:
    """Deprecated: use `torch.is_autocast_enabled('cpu')`."""

def is_autocast_enabled(device_type: str = 'cuda') -> _bool:
    """Whether operations on this type of device are autocast in this thread. As `torch.is_autocast_enabled`."""

def is_autocast_ipu_enabled() -> _bool:
    """Deprecated: use `torch.is_autocast_enabled('ipu')`."""

def is_autocast_xla_enabled() -> _bool:
    """Deprecated: use `torch.is_autocast_enabled('xla')`."""

def is_complex(input: Tensor) -> _bool:
    """Whether the dtype is a complex one. As `torch.is_complex`."""

def is_conj(input: Tensor) -> _bool:
    """False: conjugation is never put off. As `torch.is_conj`."""

def is_deterministic_algorithms_warn_only_enabled() -> _bool:
    """Whether any other algorithm would only warn."""

def is_floating_point(input: Tensor) -> _bool:
    """Whether the dtype is a floating one. As `torch.is_floating_point`."""

def is_grad_enabled() -> _bool:
    """Whether operations are recorded, so that gradients can be computed. As `torch.is_grad_enabled`."""

def is_inference(input: Tensor) -> _bool:
    """`input.is_inference(...)`. Whether this tensor was made in inference mode. As `torch.Tensor.is_inference`. As `torch.is_inference`."""

def is_inference_mode_enabled() -> _bool:
    """Whether inference mode is on."""

def is_neg(input: Tensor) -> _bool:
    """False: negation is never put off. As `torch.is_neg`."""

def is_nonzero(input: Tensor) -> _bool:
    """Whether the one element is not 0. As `torch.is_nonzero`. RuntimeError for any other number of elements."""

def is_same_size(self: Tensor, other: Tensor) -> _bool:
    """Whether the two have one shape. As `torch.Tensor.is_same_size`."""

def is_signed(input: Tensor) -> _bool:
    """Whether the dtype has negative numbers. As `torch.is_signed`."""

def is_tensor(obj: object) -> TypeIs[Tensor]:
    """Whether `obj` is a Tensor. As `torch.is_tensor`."""

def is_warn_always_enabled() -> _bool:
    """What was set by `set_warn_always`."""

def isclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
    """|input - other| <= atol + |rtol * other|, elementwise, or equal. As `torch.isclose`.

    RuntimeError for different dtypes and for negative tolerances.
    """

def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is neither inf, -inf nor nan."""

def isin(elements: Tensor | Number | _complex, test_elements: Tensor | Number | _complex, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor:
    """Whether each of `elements` is among `test_elements`; one of the two may be a number. As `torch.isin`."""

def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is inf or -inf."""

def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is nan."""

def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is -inf. RuntimeError for complex numbers. As `torch.isneginf`."""

def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is inf. RuntimeError for complex numbers. As `torch.isposinf`."""

def isreal(input: Tensor) -> Tensor:
    """Whether each element has no imaginary part. As `torch.isreal`."""

def istft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
    """The signal whose `stft` is input (frequencies, frames) or (B, frequencies, frames). As `torch.istft`."""

def kaiser_window(window_length: _int, periodic: _bool = True, beta: _float = 12.0, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta). As `torch.kaiser_window`."""

def kl_div(input: Tensor, target: Tensor, reduction: _int = 0, *, log_target: _bool = False) -> Tensor:
    """As `torch.kl_div`; see `nn.functional.kl_div`."""

def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product. As `torch.kron`."""

def kthvalue(input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Tensor | None = None) -> return_types.kthvalue:
    """(values, indices) of the `k`-th smallest element along `dim`, from 1. As `torch.kthvalue`."""

def layer_norm(input: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enable: _bool = True) -> Tensor:
    """As `torch.layer_norm`; see `nn.functional.layer_norm`."""

def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple."""

def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """`input.lcm_(...)`. In-place form of `lcm`. As `torch.lcm_`."""

def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input * 2 ** other. As `torch.ldexp`: without overflow on the way for a whole `other`."""

def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """`input.ldexp_(...)`. In-place form of `ldexp`. As `torch.ldexp_`."""

def le(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input <= other."""

def lerp(input: Tensor, end: Tensor, weight: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input + weight * (end - input), counted from the nearer end, as `torch.lerp` does.

    RuntimeError unless the tensors have one dtype, NotImplementedError for integers.
    """

def less(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input < other."""

def less_equal(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input <= other."""

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""

def linspace(start: Number | _complex | Tensor, end: Number | _complex | Tensor, steps: _int | None = None, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """`steps` values evenly spaced from `start` to `end`, both included. As `torch.linspace`."""

def load(f: FileLike, map_location: Any = None, pickle_module: Any = None, *, weights_only: _bool | None = None, mmap: _bool | None = None, **pickle_load_args: Any) -> Any:
    """Read what `save`, or PyTorch's `torch.save`, wrote, or the tensors of a safetensors or `.npz` file. As
    `torch.load`.

    f             a path or a seekable file object
    map_location  "cpu" or a device, a dict from the locations in the file to others, or a function of a storage and its
                  location that gives a storage or None
    weights_only  unless it is False, no code of the file is run, and memory and time are in proportion to the file.
                  False reads any object by `pickle` (or `pickle_module`, with `pickle_load_args`): the file can run
                  any code, so ask for it only if you trust who wrote the file
    mmap          a path's tensors are read when they are used; the file must stay as it is until then

    Raises TensorFileError, a RuntimeError that names the file and the place in it, for damaged files; WeightsError, a
    kind of it that is a pickle.UnpicklingError, too, for pickles that ask for more than values; for an empty file an
    EOFError.
    """

def lobpcg(A: Tensor, k: _int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: _int | None = None, iK: Tensor | None = None, niter: _int | None = None, tol: _float | None = None, largest: _bool | None = None, method: str | None = None, tracker: Any = None, ortho_iparams: dict[str, Any] | None = None, ortho_fparams: dict[str, Any] | None = None, ortho_bparams: dict[str, Any] | None = None) -> tuple[Tensor, Tensor]:
    """(values, vectors): the `k` largest or smallest of A x = e B x, A symmetric. As `torch.lobpcg`.

    All pairs are computed, to rounding, and `k` kept: what steers the iteration of PyTorch (`X` beyond its number of
    columns, `iK`, `niter`, `tol`, `method`, `tracker`, `ortho_*`) changes nothing.
    """

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10."""

def log10_(input: Tensor) -> Tensor:
    """`input.log10_(...)`. In-place form of `log10`. As `torch.log10_`."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 + input), exact near 0."""

def log1p_(input: Tensor) -> Tensor:
    """`input.log1p_(...)`. In-place form of `log1p`. As `torch.log1p_`."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2."""

def log2_(input: Tensor) -> Tensor:
    """`input.log2_(...)`. In-place form of `log2`. As `torch.log2_`."""

def log_(input: Tensor) -> Tensor:
    """`input.log_(...)`. In-place form of `log`. As `torch.log_`."""

def log_softmax(input: Tensor, dim: _int, dtype: dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(softmax(input)) along `dim`, in `dtype` if given. As `torch.log_softmax`."""

def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(exp(input) + exp(other)), without overflow."""

def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log2(2**input + 2**other), without overflow."""

def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of exp(input) along `dim`, without overflow. As `torch.logcumsumexp`."""

def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan if that is negative. As `torch.logdet`."""

def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input and other, of what is not 0."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is 0."""

def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input or other, of what is not 0."""

def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input xor other, of what is not 0."""

def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(input / (1 - input)), of `input` limited to [eps, 1 - eps] if that is given. As `torch.logit`."""

def logit_(input: Tensor, eps: _float | None = None) -> Tensor:
    """`input.logit_(...)`. In-place form of `logit`. As `torch.logit_`."""

def logspace(start: Number | _complex | Tensor, end: Number | _complex | Tensor, steps: _int | None = None, base: Number | _complex = 10.0, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """`base` to the powers `linspace(start, end, steps)`. As `torch.logspace`."""

def logsumexp(input: Tensor, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """log(sum(exp(input))) over `dim`, without overflow. As `torch.logsumexp`."""

long: dtype
def lstm(input: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> (output, *state), or with (data, batch_sizes) of a packed sequence in place of input. As `torch.lstm`."""

def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One step of the layer. As `torch.lstm_cell`."""

def lstsq(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed, as `torch.lstsq` is. RuntimeError."""

def lt(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input < other."""

@overload
def lu(A: Tensor, pivot: _bool = True, get_infos: Literal[False] = False) -> tuple[Tensor, Tensor]:
    """(LU, pivots), and with `get_infos` the number of the first zero pivot. As `torch.lu`."""
@overload
def lu(A: Tensor, pivot: _bool = True, *, get_infos: Literal[True]) -> tuple[Tensor, Tensor, Tensor]: ...

def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """X with AX = b from what `lu` gives of A. As `torch.lu_solve`."""

def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Tensor | None = None) -> return_types.lu_unpack:
    """(P, L, U) of what `lu_factor` gives. As `torch.lu_unpack`."""

def manual_seed(seed: _int) -> Generator:
    """Seed the default generators of the CPU and of all devices, and return that of the CPU. As `torch.manual_seed`."""

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, reduction: _int = 0) -> Tensor:
    """As `torch.margin_ranking_loss`; see `nn.functional.margin_ranking_loss`."""

def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number | _complex) -> Tensor:
    """`input` with `value` where `mask` is true, in the dtype of `input`. As `torch.masked_fill`."""

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements where `mask` is true replaced by those of `source` in order. As `torch.masked_scatter`.

    RuntimeError if `source` has too few elements.
    """

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where `mask` is true. As `torch.masked_select`. A graph is for one number of them."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of vectors, matrices or batches of matrices. As `torch.matmul`. RuntimeError if sizes do not fit."""

def matrix_exp(A: Tensor) -> Tensor:
    """The exponential function of square matrices. As `torch.linalg.matrix_exp`."""

def matrix_power(A: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th power of square matrices, of the inverse if negative. As `torch.linalg.matrix_power`."""

def matrix_rank(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed, as `torch.matrix_rank` is. RuntimeError."""

@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The max of all elements; over `dim`, a named tuple (values, indices), whose gradient goes to the element picked; of two tensors, elementwise. As `torch.max`."""
@overload
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> return_types.max: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...

def max_pool1d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = (), padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False) -> Tensor:
    """See `nn.functional`. As `torch.max_pool1d`."""

def max_pool1d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]:
    """(maxima, places). As `torch.nn.functional.max_pool1d_with_indices`."""

def max_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = (), padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False) -> Tensor:
    """See `nn.functional`. As `torch.max_pool2d`."""

def max_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = (), padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False) -> Tensor:
    """See `nn.functional`. As `torch.max_pool3d`."""

def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two numbers; nan if one of them is."""

def mean(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, axis: _int | Sequence[_int] | None = None, keepdims: _bool = False, out: Tensor | None = None) -> Tensor:
    """The mean over `dim`, over everything if None. As `torch.mean`. RuntimeError for integers without `dtype`."""

@overload
def median(input: Tensor) -> Tensor:
    """The lower median: of all elements, or (values, indices) along `dim`. As `torch.median`."""
@overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> return_types.median: ...

def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of the grid that 1-d tensors span, one tensor a dim. As `torch.meshgrid`.

    `indexing` "ij": dims in the order of the tensors; "xy": the first two swapped. RuntimeError for tensors of several
    dims or of different dtypes.
    """

@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The min of all elements; over `dim`, a named tuple (values, indices), whose gradient goes to the element picked; of two tensors, elementwise. As `torch.min`."""
@overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> return_types.min: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...

def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two numbers; nan if one of them is."""

def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices. As `torch.mm`."""

def mode(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Tensor | None = None) -> return_types.mode:
    """(values, indices) of the most frequent element along `dim`, the smallest of them. As `torch.mode`."""

def moveaxis(input: Tensor, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
    """Dims `source` moved to the places `destination`, the others in their order. As `torch.movedim`."""

def movedim(input: Tensor, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
    """Dims `source` moved to the places `destination`, the others in their order. As `torch.movedim`."""

def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` sorted along its first dim. As `torch.msort`."""

def mul(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input * other."""

def multinomial(input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Indices drawn with probabilities in proportion to the last dim of `input`. As `torch.multinomial`.

    input: (n,) or (m, n), floating; returns (num_samples,) or (m, num_samples), int64. Raises RuntimeError for any
    other shape or dtype, for a negative, infinite or nan entry, for a sum of zero, and for more samples than entries
    without `replacement`.
    """

def multiply(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input * other."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector. As `torch.mv`."""

def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p` >= 1. As `torch.mvlgamma`."""

nan: _float
def nan_to_num(input: Tensor, nan: _float | None = 0.0, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """`input` with numbers for nan and infinities: by default 0 and the largest there are. As `torch.nan_to_num`."""

def nan_to_num_(input: Tensor, nan: _float | None = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """`input.nan_to_num_(...)`. In-place form of `nan_to_num`. As `torch.nan_to_num_`."""

def nanmean(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The mean over `dim` of what is not nan. As `torch.nanmean`. RuntimeError for integers and complex numbers."""

@overload
def nanmedian(input: Tensor) -> Tensor:
    """The lower median, of what is not nan: of all elements, or (values, indices) along `dim`. As `torch.nanmedian`."""
@overload
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> return_types.nanmedian: ...

def nanquantile(input: Tensor, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
    """The `q`-quantiles along `dim`, of what is not nan, of all elements if None; a vector `q` is the first dim of the result. As `torch.nanquantile`."""

def nansum(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The sum over `dim`, nan counting as 0. As `torch.nansum`. RuntimeError for complex numbers."""

def narrow(input: Tensor, dim: _int, start: _int | Tensor, length: _int) -> Tensor:
    """`length` elements along `dim`, from `start` on. As `torch.narrow`. RuntimeError if there are fewer."""

def narrow_copy(input: Tensor, dim: _int, start: _int, length: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of `length` elements along `dim`, from `start` on. As `torch.Tensor.narrow_copy`."""

def ne(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input != other."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-input."""

def neg_(input: Tensor) -> Tensor:
    """`input.neg_(...)`. In-place form of `neg`. As `torch.neg_`."""

def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-input."""

def negative_(input: Tensor) -> Tensor:
    """`input.negative_(...)`. In-place form of `neg`. As `torch.negative_`."""

newaxis: None
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next number after `input` towards `other`."""

@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor:
    """The indices of nonzero elements: rows of an int64 matrix, or one vector a dim. As `torch.nonzero`.

    A graph is for one number of them.
    """
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...

def nonzero_static(input: Tensor, *, size: _int, fill_value: _int = -1, out: Tensor | None = None) -> Tensor:
    """The indices of the first `size` nonzero elements, rows of `fill_value` where there are fewer.

    As `torch.nonzero_static`. RuntimeError for a negative `size`.
    """

def norm(input: Tensor, p: _float | str | None = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """The vector norm of order `p` over `dim`, over everything if None; its gradient at 0 is 0. As `torch.norm`.

    "nuc" is the sum of the singular values of the matrices in the two dims `dim`.
    """

def norm_except_dim(v: Tensor, pow: _int = 2, dim: _int = 0) -> Tensor:
    """The norms of the slices along `dim`, of all for -1; with ones for the other dims. As `torch.norm_except_dim`."""

@overload
def normal(mean: Tensor, std: _float | Tensor = 1, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Normal numbers: `mean` and `std` are numbers and `size` a shape, or tensors. As `torch.normal`."""
@overload
def normal(mean: _float, std: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def normal(mean: _float, std: _float, size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

def not_equal(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether input != other."""

def nuclear_norm(input: Tensor, dim: _int | Sequence[_int] | None = (-2, -1), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of the singular values. As `torch.nuclear_norm`."""

def numel(input: Tensor) -> _int:
    """The number of elements. As `torch.numel`."""

@overload
def ones(*size: _int, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """Ones. As `torch.ones`."""
@overload
def ones(size: Sequence[_int], *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

def ones_like(input: Tensor, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, memory_format: memory_format | None = None) -> Tensor:
    """Ones in the shape and dtype of `input`. As `torch.ones_like`."""

ops: Operations
def orgqr(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of Householder reflections. As `torch.linalg.householder_product`."""

def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: _bool = True, transpose: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The product of the square Q that `geqrf` gives, or of its adjoint, and `other`. As `torch.ormqr`."""

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix of all products of two vectors. As `torch.outer`."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dim. As `torch.nn.functional.pairwise_distance`."""

def pca_lowrank(A: Tensor, q: _int | None = None, center: _bool = True, niter: _int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V): `svd_lowrank` of `A`, less the means of its columns if `center`. As `torch.pca_lowrank`."""

def pdist(input: Tensor, p: _float = 2) -> Tensor:
    """The p-norms between all pairs of rows of (n, m): (n (n - 1) / 2,). As `torch.nn.functional.pdist`."""

def permute(input: Tensor, dims: Sequence[_int]) -> Tensor:
    """The dims in the order `dims`. As `torch.permute`."""

def permute_copy(input: Tensor, *axes: _int | Sequence[_int], dims: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """A copy of what `permute` shows. As `torch.permute_copy`."""

pi: _float
def pinverse(input: Tensor, rcond: _float = 1e-15) -> Tensor:
    """The pseudoinverse. As `torch.pinverse`."""

def pixel_shuffle(input: Tensor, upscale_factor: _int) -> Tensor:
    """(*, C * r^2, H, W) -> (*, C, H * r, W * r). As `torch.nn.functional.pixel_shuffle`."""

def pixel_unshuffle(input: Tensor, downscale_factor: _int) -> Tensor:
    """(*, C, H * r, W * r) -> (*, C * r^2, H, W). As `torch.nn.functional.pixel_unshuffle`."""

def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with the rates in `input`. As `torch.poisson`. RuntimeError for a negative rate."""

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: _bool, full: _bool, eps: _float, reduction: _int) -> Tensor:
    """As `torch.poisson_nll_loss`; see `nn.functional.poisson_nll_loss`."""

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from absolute value and angle. As `torch.polar`."""

def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of `digamma`. As `torch.polygamma`. RuntimeError for a negative n."""

def positive(input: Tensor) -> Tensor:
    """`input` itself. As `torch.positive`. RuntimeError for bools."""

def pow(input: Tensor | Number | _complex, exponent: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input ** exponent. As `torch.pow`. RuntimeError for integers with a negative integer number as exponent."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input where positive, else weight * input; a weight a channel, or one for all. As `torch.nn.functional.prelu`."""

preserve_format: memory_format
def prod(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The product over `dim`, over everything if None. As `torch.prod`."""

def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that holds both. As `torch.promote_types`."""

def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
    """`input` with `source` written (or added) at `index` of its flattened elements. As `torch.put`.

    IndexError for an index out of range or another number of elements, RuntimeError for other dtypes.
    """

qint32: dtype
qint8: dtype
def qr(input: Tensor, some: _bool = True, *, out: Tensor | None = None) -> return_types.qr:
    """(Q, R), reduced with `some`. As `torch.qr`."""

def quantile(input: Tensor, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
    """The `q`-quantiles along `dim`, of all elements if None; a vector `q` is the first dim of the result. As `torch.quantile`."""

quint2x4: dtype
quint4x2: dtype
quint8: dtype
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each angle times 57.2958. RuntimeError for complex numbers. As `torch.rad2deg`."""

def rad2deg_(input: Tensor) -> Tensor:
    """`input.rad2deg_(...)`. In-place form of `rad2deg`. As `torch.rad2deg_`."""

@overload
def rand(*size: _int, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """Uniform numbers in [0, 1), of shape `size`. As `torch.rand`."""
@overload
def rand(size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, memory_format: memory_format | None = None) -> Tensor:
    """Uniform numbers in [0, 1) of the shape and dtype of `input`. As `torch.rand_like`."""

@overload
def randint(high: _int, size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """Integers in [low, high): `randint(high, size)` or `randint(low, high, size)`. As `torch.randint`.

    Raises RuntimeError for an empty range or bounds that `dtype` (int64 by default) does not hold.
    """
@overload
def randint(low: _int, high: _int, size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

@overload
def randint_like(input: Tensor, high: _int, *, generator: Generator | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, memory_format: memory_format | None = None) -> Tensor:
    """Integers in [low, high) of the shape and dtype of `input`. As `torch.randint_like`."""
@overload
def randint_like(input: Tensor, low: _int, high: _int, *, generator: Generator | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, memory_format: memory_format | None = None) -> Tensor: ...

@overload
def randn(*size: _int, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """Standard normal numbers, of shape `size`. As `torch.randn`."""
@overload
def randn(size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, memory_format: memory_format | None = None) -> Tensor:
    """Standard normal numbers of the shape and dtype of `input`. As `torch.randn_like`."""

def randperm(n: _int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """A random permutation of the integers 0 to n - 1, of shape (n,). As `torch.randperm`."""

def range(start: Number = 0, end: Number | None = None, step: Number = 1, *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, requires_grad: _bool = False) -> Tensor:
    """start, start + step, ... up to and including `end`; deprecated: use `arange`. As `torch.range`."""

def ravel(input: Tensor) -> Tensor:
    """All elements in one dim, a view if they lie in order in memory. As `torch.ravel`."""

def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor itself. As `torch.real`."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / input."""

def reciprocal_(input: Tensor) -> Tensor:
    """`input.reciprocal_(...)`. In-place form of `reciprocal`. As `torch.reciprocal_`."""

def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """max(input, 0)."""

def relu_(input: Tensor) -> Tensor:
    """`relu` in place. As `torch.nn.functional.relu_`."""

def remainder(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input modulo other, with the sign of `other`."""

def renorm(input: Tensor, p: _float, dim: _int, maxnorm: _float, *, out: Tensor | None = None) -> Tensor:
    """The slices along `dim` whose p-norm exceeds `maxnorm` scaled down to it. As `torch.renorm`.

    RuntimeError for p <= 0, a negative maxnorm, or fewer than two dims.
    """

@overload
def repeat_interleave(input: Tensor, repeats: _int | Tensor, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
    """Each slice along `dim` (each element, if None) `repeats` times in a row. As `torch.repeat_interleave`.

    Of counts alone, each place as often as its count says. `output_size` is how many there will be.
    """
@overload
def repeat_interleave(repeats: Tensor, *, output_size: _int | None = None) -> Tensor: ...

def reshape(input: Tensor, shape: Sequence[_int]) -> Tensor:
    """The elements in row-major order in `shape`; one size may be -1. Shares memory if it can. As `torch.reshape`."""

def resize_as_(input: Tensor, the_template: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """`input.resize_as_(...)`. `resize_` to the sizes of another tensor. As `torch.Tensor.resize_as_`. As `torch.resize_as_`."""

def resize_as_sparse_(self: Tensor, the_template: Tensor) -> Tensor:
    """`sparse_resize_` to the shape of another COO tensor. As `torch.resize_as_sparse_`."""

def resolve_conj(input: Tensor) -> Tensor:
    """`input`: conjugation is never put off. As `torch.resolve_conj`."""

def resolve_neg(input: Tensor) -> Tensor:
    """`input`: negation is never put off. As `torch.resolve_neg`."""

def result_type(tensor1: Tensor | Number | _complex, tensor2: Tensor | Number | _complex) -> dtype:
    """The dtype of an arithmetic result of two tensors or Python scalars. As `torch.result_type`."""

def rms_norm(input: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None, eps: _float | None = None) -> Tensor:
    """input / sqrt(mean(input^2) + eps) over the last dims, times weight. As in PyTorch."""

def rnn_relu(input: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    """(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> (output, *state), or with (data, batch_sizes) of a packed sequence in place of input. As `torch.rnn_relu`."""

def rnn_relu_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of the layer. As `torch.rnn_relu_cell`."""

def rnn_tanh(input: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    """(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> (output, *state), or with (data, batch_sizes) of a packed sequence in place of input. As `torch.rnn_tanh`."""

def rnn_tanh_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of the layer. As `torch.rnn_tanh_cell`."""

def roll(input: Tensor, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] = ()) -> Tensor:
    """The elements moved on by `shifts` along `dims`, round the end; flattened if None. As `torch.roll`."""

def rot90(input: Tensor, k: _int = 1, dims: Sequence[_int] = (0, 1)) -> Tensor:
    """`input` turned by k times 90 degrees in the plane of two dims. As `torch.rot90`."""

def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest multiple of 10 ** -decimals, the even one if two are. As `torch.round`."""

def round_(input: Tensor, *, decimals: _int = 0) -> Tensor:
    """`input.round_(...)`. In-place form of `round`. As `torch.round_`."""

def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors joined along the first dim, vectors as rows. As `torch.vstack`."""

def rrelu(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, generator: Generator | None = None) -> Tensor:
    """As `torch.rrelu`; see `nn.functional.rrelu`. NotImplementedError with a generator."""

def rrelu_(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False) -> Tensor:
    """`rrelu` in place. As `torch.nn.functional.rrelu_`."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / sqrt(input)."""

def rsqrt_(input: Tensor) -> Tensor:
    """`input.rsqrt_(...)`. In-place form of `rsqrt`. As `torch.rsqrt_`."""

def rsub(input: Tensor, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1) -> Tensor:
    """other - alpha * input. As `torch.rsub`."""

def save(obj: object, f: Any, pickle_module: Any = ..., pickle_protocol: _int = 2) -> None:
    """Write `obj` (tensors, numbers, strings, nests of them) to a path or file object. As `torch.save`.

    `load` reads files of values without running code, here and in PyTorch. Any other object, such as a module, an
    optimizer or one of a user's class, is kept by the name of its class and its state, as `pickle` does, with PyTorch's
    names: such files are for `load(weights_only=False)` here and in PyTorch. The two pickle arguments change nothing.

    Raises what `pickle` raises for what it cannot keep, with a note of its place, TypeError for what could not be
    loaded again, and RuntimeError for memory that is shown in two dtypes, before the file is touched; a file at a path
    is replaced when the new one is complete.
    """

def scalar_tensor(s: Number | _complex, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """A 0-d tensor, of the default dtype if None is given. As `torch.scalar_tensor`."""

@overload
def scatter(input: Tensor, dim: _int, index: Tensor, src: Tensor | Number | _complex, *, reduce: str | None = None, out: Tensor | None = None) -> Tensor:
    """`input` with each src[i][j], or `value`, written at [index[i][j]][j] for dim 0, and so on. As `torch.scatter`.

    With `reduce`, "add" or "multiply", combined with what is there.
    """
@overload
def scatter(input: Tensor, dim: _int, index: Tensor, *, value: Number | _complex, reduce: str | None = None) -> Tensor: ...

def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with each src[i][j] added at [index[i][j]][j] for dim 0, and so on. As `torch.scatter_add`."""

def scatter_reduce(input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """`input` with the elements src[i][j] reduced into [index[i][j]][j] for dim 0, and so on.

    `reduce`: "sum", "prod", "mean", "amax" or "amin"; without `include_self`, of the elements of `src` alone where
    there are any. As `torch.scatter_reduce`. RuntimeError for an index out of bounds.
    """

def searchsorted(sorted_sequence: Tensor, input: Tensor, *, out_int32: _bool = False, right: _bool = False, side: str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """Where each value would have to be put in for `sorted_sequence` to stay sorted along its last dim.

    `right`: behind equal elements. `sorter`: the indices that sort the sequence. As `torch.searchsorted`.
    """

def seed() -> _int:
    """Seed the default generator from the operating system; returns the seed."""

def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None, axis: _int = 0, unsafe: _bool = False, initial: _float | None = None) -> Tensor:
    """The "sum", "mean", "prod", "max" or "min" of each run that `data` is cut into along `axis`.

    lengths: how long the runs are, or `offsets`: where they begin, and the end; both may have leading dims, as many as
    `axis`. initial: what a reduction begins with. Raises RuntimeError for lengths that do not add up (unless `unsafe`).
    As `torch.segment_reduce`.
    """

def select(input: Tensor, dim: _int, index: _int) -> Tensor:
    """The slice number `index` along `dim`, without it. As `torch.select`. IndexError if there is none."""

def select_copy(input: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `select` shows. As `torch.select_copy`."""

def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """`input` with slice number `index` along `dim` replaced by `src`. As `torch.select_scatter`."""

def selu(input: Tensor) -> Tensor:
    """As `torch.selu`; see `nn.functional.selu`."""

def selu_(input: Tensor) -> Tensor:
    """`selu` in place. As `torch.nn.functional.selu_`."""

def set_autocast_cache_enabled(enabled: _bool) -> None:
    """Keep casts of weights until autocast ends, or make each anew. As `torch.set_autocast_cache_enabled`."""

def set_autocast_cpu_dtype(dtype: dtype, /) -> None:
    """Deprecated: use `torch.set_autocast_dtype('cpu', dtype)`."""

def set_autocast_cpu_enabled(enabled: _bool, /) -> None:
    """Deprecated: use `torch.set_autocast_enabled('cpu', enabled)`."""

def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set what `get_autocast_dtype` returns. As `torch.set_autocast_dtype`."""

@overload
def set_autocast_enabled(device_type: str, enabled: _bool, /) -> None:
    """`set_autocast_enabled(device_type, enabled)`; of CUDA if one argument is given."""
@overload
def set_autocast_enabled(enabled: _bool, /) -> None: ...

def set_autocast_gpu_dtype(dtype: dtype, /) -> None:
    """Deprecated: use `torch.set_autocast_dtype('cuda', dtype)`."""

def set_autocast_ipu_dtype(dtype: dtype, /) -> None:
    """Deprecated: use `torch.set_autocast_dtype('ipu', dtype)`."""

def set_autocast_ipu_enabled(enabled: _bool, /) -> None:
    """Deprecated: use `torch.set_autocast_enabled('ipu', enabled)`."""

def set_autocast_xla_dtype(dtype: dtype, /) -> None:
    """Deprecated: use `torch.set_autocast_dtype('xla', dtype)`."""

def set_autocast_xla_enabled(enabled: _bool, /) -> None:
    """Deprecated: use `torch.set_autocast_enabled('xla', enabled)`."""

def set_default_device(device: Device) -> None:
    """Make tensors on `device` (a string or a device; None: the CPU) from now on, outside of contexts.

    Raises what a tensor there would: AssertionError for CUDA.
    """

def set_default_dtype(dtype: dtype | None) -> None:
    """Set the dtype of new floating tensors. As `torch.set_default_dtype`. TypeError unless `dtype` is floating."""

def set_default_tensor_type(t: Any) -> None:
    """Make the dtype of `t`, a typed constructor or its name, the default. As `torch.set_default_tensor_type`."""

def set_deterministic_debug_mode(debug_mode: _int | str) -> None:
    """Choose among "default" (0), "warn" (1) and "error" (2). RuntimeError for anything else."""

def set_float32_matmul_precision(precision: str) -> None:
    """Set how exact products of float32 have to be on devices that can round their operands: "highest" (float32's own
    precision, the default), "high" (TensorFloat-32) or "medium" (bfloat16). On the CPU all have float32's own.

    Programs that are compiled from then on keep to it. Warns of any other word.
    """

def set_flush_denormal(mode: _bool) -> _bool:
    """False for `mode=True`: NumPy keeps denormal numbers."""

def set_num_interop_threads(num: _int) -> None:
    """Nothing: operations do not run side by side. RuntimeError unless `num` is a positive integer."""

def set_num_threads(num: _int) -> None:
    """Set how many threads the linear algebra of NumPy and of SciPy may use. As `torch.set_num_threads`.

    Factors of small matrices are left to one thread in any case, and all else of eager runs in one. A program that is
    compiled while the number is 1 runs in one, too; XLA decides by itself on the threads of others. RuntimeError unless
    `num` is a positive integer.
    """

def set_printoptions(precision: _int | None = None, threshold: _float | None = None, edgeitems: _int | None = None, linewidth: _int | None = None, profile: str | None = None, sci_mode: _bool | None = None) -> None:
    """Set how tensors are printed; see `PrintOptions`. `profile` is "default", "short" or "full".

    As in PyTorch, a call without `sci_mode` lets the values choose again.
    """

def set_rng_state(new_state: Tensor) -> None:
    """Continue the default generator from `new_state`."""

def set_warn_always(b: _bool) -> None:
    """Give warnings each time that PyTorch gives once in a process, or not. As `torch.set_warn_always`."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """z / |z|, 0 for 0; the sign of a real number. As `torch.sgn`."""

short: dtype
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-input))."""

def sigmoid_(input: Tensor) -> Tensor:
    """`input.sigmoid_(...)`. In-place form of `sigmoid`. As `torch.sigmoid_`."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1: the sign of each element."""

def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign bit is set: of negative numbers and -0.0."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine of radians."""

def sin_(input: Tensor) -> Tensor:
    """`input.sin_(...)`. In-place form of `sin`. As `torch.sin_`."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(pi input) / (pi input), and 1 at 0."""

def sinc_(input: Tensor) -> Tensor:
    """`input.sinc_(...)`. In-place form of `sinc`. As `torch.sinc_`."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine."""

def sinh_(input: Tensor) -> Tensor:
    """`input.sinh_(...)`. In-place form of `sinh`. As `torch.sinh_`."""

def slice_copy(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `slice` shows. As `torch.slice_copy`."""

def slice_inverse(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """The tensor of `src`'s memory of which `slice(dim, start, end, step)` is `input`. As `torch.slice_inverse`."""

def slice_scatter(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """`input` with input[start:end:step] along `dim` replaced by `src`. As `torch.slice_scatter`."""

def slogdet(input: Tensor) -> return_types.slogdet:
    """(sign, logabsdet) of the determinant. As `torch.slogdet`."""

def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse and a strided matrix, as a sparse tensor of all its elements. As `torch.smm`."""

def softmax(input: Tensor, dim: _int, dtype: dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """exp(input) normalized to sum 1 along `dim`, in `dtype` if given. As `torch.softmax`."""

def softplus(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(input))."""

def solve(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed, as `torch.solve` is. RuntimeError."""

def sort(input: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> return_types.sort:
    """(values, indices) in order along `dim`; equal elements keep their order. As `torch.sort`."""

def source(op: Op | str, dtype: dtype | None = None) -> str:
    """The generated NumPy source of an op's forward and backward functions, for `dtype` (float32 by default).

    >>> import eager
    >>> print(eager.source("tanh").splitlines()[0])
    def tanh_input_ff(out, g, r):
    """

sparse_bsc: layout
def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[_int] | None = None, *, dtype: dtype | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A tensor in CSC of dense blocks, of `ccol_indices` (*B, m + 1), `row_indices` (*B, n) and `values` (*B, n, *block, *dense). As `torch.sparse_bsc_tensor`. With `check_invariants`, RuntimeError unless these fit together."""

sparse_bsr: layout
def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Sequence[_int] | None = None, *, dtype: dtype | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A tensor in CSR of dense blocks, of `crow_indices` (*B, m + 1), `col_indices` (*B, n) and `values` (*B, n, *block, *dense). As `torch.sparse_bsr_tensor`. With `check_invariants`, RuntimeError unless these fit together."""

def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[_int] | None = None, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A tensor in the compressed `layout`, which has to be given. As `torch.sparse_compressed_tensor`."""

sparse_coo: layout
def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Sequence[_int] | None = None, *, dtype: dtype | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None, is_coalesced: _bool | None = None) -> Tensor:
    """A COO tensor of `values` (n, *dense) at `indices` (sparse dims, n). As `torch.sparse_coo_tensor`.

    size: the shape; by default the smallest that holds all. `sparse_coo_tensor(size)` has no elements. Values for one
    place add up. RuntimeError for numbers of dims and elements that do not fit, for a negative index if no size is
    given, and with `check_invariants` for an index out of range.
    """

sparse_csc: layout
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[_int] | None = None, *, dtype: dtype | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A tensor in CSC, of `ccol_indices` (*B, m + 1), `row_indices` (*B, n) and `values` (*B, n, *block, *dense). As `torch.sparse_csc_tensor`. With `check_invariants`, RuntimeError unless these fit together."""

sparse_csr: layout
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Sequence[_int] | None = None, *, dtype: dtype | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A tensor in CSR, of `crow_indices` (*B, m + 1), `col_indices` (*B, n) and `values` (*B, n, *block, *dense). As `torch.sparse_csr_tensor`. With `check_invariants`, RuntimeError unless these fit together."""

def split(tensor: Tensor, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Pieces along `dim`: of `split_size` each (the last may be smaller), or of the sizes listed. As `torch.split`."""

def split_copy(input: Tensor, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Copies of what `split` shows. As `torch.split_copy`."""

def split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Pieces along `dim` of the sizes listed. As `torch.split_with_sizes`. RuntimeError unless they fill it."""

def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Copies of what `split_with_sizes` shows. As `torch.split_with_sizes_copy`."""

def spmm(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices, or of a matrix and a vector, of which one is sparse, or both.

    Dense, but of two sparse matrices sparse, in the layout of the first. RuntimeError for sizes that do not fit, other
    numbers of dims, and different dtypes.
    """

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root."""

def sqrt_(input: Tensor) -> Tensor:
    """`input.sqrt_(...)`. In-place form of `sqrt`. As `torch.sqrt_`."""

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input * input."""

def square_(input: Tensor) -> Tensor:
    """`input.square_(...)`. In-place form of `square`. As `torch.square_`."""

def squeeze(input: Tensor, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
    """Without the dims of size 1: all, or those among `dim`. As `torch.squeeze`."""

def squeeze_copy(input: Tensor, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """A copy of what `squeeze` shows. As `torch.squeeze_copy`."""

def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) of sparse `input` and `mat1`, sparse. As `torch.sspaddmm`."""

def stack(tensors: Sequence[Tensor], dim: _int = 0, *, axis: _int | Sequence[_int] | None = None, out: Tensor | None = None) -> Tensor:
    """The tensors, of one shape, side by side along a new `dim`. As `torch.stack`. RuntimeError if shapes differ."""

@overload
def std(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The standard deviation over `dim`, divisor n - correction (1). As `torch.std`. RuntimeError for integers."""
@overload
def std(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: Number | None = None, unbiased: _bool | None = None, keepdim: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def std(input: Tensor, unbiased: _bool) -> Tensor: ...

def std_mean(input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: Number | _complex | None = None) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean) over `dim`. As `torch.std_mean`."""

def stft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
    """Fourier transforms of overlapping frames of input (L) or (B, L): (B, frequencies, frames). As `torch.stft`."""

strided: layout
def sub(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha * other. As `torch.sub`."""

def subtract(input: Tensor, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha * other. As `torch.sub`."""

def sum(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, axis: _int | Sequence[_int] | None = None, keepdims: _bool = False, out: Tensor | None = None) -> Tensor:
    """The sum over `dim`, over everything if None; integers and bools are summed in int64. As `torch.sum`."""

def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Tensor | None = None) -> return_types.svd:
    """(U, S, V) with input = U diag(S) V^H. As `torch.svd`."""

def svd_lowrank(A: Tensor, q: _int | None = 6, niter: _int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with A - M nearly U diag(S) V^H, of `q` singular values. As `torch.svd_lowrank` (algorithm 5.1)."""

def swapaxes(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """With `dim0` and `dim1` exchanged. As `torch.transpose`."""

def swapdims(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """With `dim0` and `dim1` exchanged. As `torch.transpose`."""

def sym_float(a: Any) -> _float:
    """`a` as a float. As `torch.sym_float`."""

def sym_int(a: Any) -> _int:
    """`a` without its fraction. As `torch.sym_int`."""

def sym_ite(b: Any, t: _R, f: _R) -> _R:
    """`t` if `b`, else `f`. As `torch.sym_ite`."""

def sym_max(a: Any, b: Any) -> Any:
    """The larger one; a float if either is. As `torch.sym_max`."""

def sym_min(a: Any, b: Any) -> Any:
    """The smaller one; a float if either is. As `torch.sym_min`."""

def sym_not(a: Any) -> _bool:
    """Whether `a` is false. As `torch.sym_not`."""

def sym_sqrt(a: Any) -> _float:
    """The square root. As `torch.sym_sqrt`."""

def sym_sum(args: Iterable[Any]) -> Any:
    """The sum. As `torch.sym_sum`."""

def symeig(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed, as `torch.symeig` is. RuntimeError."""

def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or number as it is. As `torch.t`. RuntimeError for more than two dims."""

def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `t` shows. As `torch.t_copy`."""

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at `index` of the flattened `input`. As `torch.take`. IndexError for one out of range."""

def take_along_dim(input: Tensor, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """`gather` with sizes broadcast; of the flattened tensor without `dim`. As `torch.take_along_dim`."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent of radians."""

def tan_(input: Tensor) -> Tensor:
    """`input.tan_(...)`. In-place form of `tan`. As `torch.tan_`."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""

def tanh_(input: Tensor) -> Tensor:
    """`input.tanh_(...)`. In-place form of `tanh`. As `torch.tanh_`."""

def tensor(data: Any, *, dtype: dtype | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested sequences, an ndarray. As `torch.tensor`.

    Python floats get the default dtype, integers int64. ValueError for ragged or non-numeric sequences.
    """

def tensor_split(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """Pieces along `dim`: that many of nearly equal size, or cut at the indices listed. As `torch.tensor_split`."""

def tensordot(a: Tensor, b: Tensor, dims: _int | Sequence[Sequence[_int]] | Tensor = 2, *, out: Tensor | None = None) -> Tensor:
    """Products summed over `dims`: the last of `a` and the first of `b`, or two lists of dims. As `torch.tensordot`."""

def threshold(input: Tensor, threshold: _float, value: _float) -> Tensor:
    """`input` where it is above `threshold`, else `value`. As `torch.threshold`."""

def threshold_(input: Tensor, threshold: _float, value: _float) -> Tensor:
    """`threshold` in place. As `torch.nn.functional.threshold_`."""

def tile(input: Tensor, dims: Sequence[_int]) -> Tensor:
    """As `repeat`, with ones put in front of too few counts. As `torch.tile`."""

def topk(input: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Tensor | None = None) -> return_types.topk:
    """(values, indices) of the `k` largest (or smallest) elements along `dim`. As `torch.topk`.

    RuntimeError if there are fewer than `k`.
    """

def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal. As `torch.trace`. RuntimeError for anything but a matrix."""

def transpose(input: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """With `dim0` and `dim1` exchanged. As `torch.transpose`."""

def transpose_copy(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `transpose` shows. As `torch.transpose_copy`."""

def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | _complex | None = None, dim: _int = -1) -> Tensor:
    """The integral of samples `y` along `dim`, taken at points `x` or `dx` apart. As `torch.trapezoid`.

    RuntimeError for bools, and for another number of points than samples.
    """

def trapz(y: Tensor, x: Tensor | None = None, *, dx: Number | _complex | None = None, dim: _int = -1) -> Tensor:
    """The integral of samples `y` along `dim`, taken at points `x` or `dx` apart. As `torch.trapezoid`.

    RuntimeError for bools, and for another number of points than samples.
    """

def triangular_solve(b: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Tensor | None = None) -> return_types.triangular_solve:
    """(solution, cloned_coefficient) of AX = b, A triangular. As `torch.triangular_solve`."""

def trigamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The second derivative of the logarithm of the gamma function."""

def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of the last two dims, zeros above `diagonal`. As `torch.tril`."""

def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: dtype | None = None, device: Device = None, layout: layout | None = None) -> Tensor:
    """The (2, N) indices of a triangle of a (row, col) matrix, in row-major order. As `torch.tril_indices`."""

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2.0, eps: _float = 1e-06, swap: _bool = False, reduction: _int = 0) -> Tensor:
    """As `torch.triplet_margin_loss`; see `nn.functional.triplet_margin_loss`."""

def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of the last two dims, zeros below `diagonal`. As `torch.triu`."""

def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: dtype | None = None, device: Device = None, layout: layout | None = None) -> Tensor:
    """The (2, N) indices of a triangle of a (row, col) matrix, in row-major order. As `torch.triu_indices`."""

def true_divide(input: Tensor, other: Tensor | Number | _complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each number as a whole one, rounded towards 0."""

def trunc_(input: Tensor) -> Tensor:
    """`input.trunc_(...)`. In-place form of `trunc`. As `torch.trunc_`."""

def typename(value: Tensor | Number | _complex) -> str:
    """The type of `value` as PyTorch's messages name it: "torch.FloatTensor", "str", "package.Class"."""

uint1: dtype
uint16: dtype
uint2: dtype
uint3: dtype
uint32: dtype
uint4: dtype
uint5: dtype
uint6: dtype
uint64: dtype
uint7: dtype
uint8: dtype
def unbind(input: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, without it. As `torch.unbind`."""

def unbind_copy(input: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """Copies of what `unbind` shows. As `torch.unbind_copy`."""

def unflatten(input: Tensor, dim: _int, sizes: Sequence[_int]) -> Tensor:
    """`dim` split into `sizes`, of which one may be -1. As `torch.unflatten`."""

def unfold_copy(input: Tensor, dimension: _int, size: _int, step: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `unfold` shows. As `torch.unfold_copy`."""

@overload
def unique(input: Tensor, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
    """The different elements in order, or slices along `dim`; where each element of `input` is among them, and how many
    there are of each, if asked for. As `torch.unique`. A graph is for one number of them.
    """
@overload
def unique(input: Tensor, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def unique(input: Tensor, sorted: _bool = True, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def unique(input: Tensor, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...

@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
    """`input` without elements (or slices along `dim`) that equal the one before. As `torch.unique_consecutive`."""
@overload
def unique_consecutive(input: Tensor, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(input: Tensor, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...

def unravel_index(indices: Tensor, shape: _int | Sequence[_int]) -> tuple[Tensor, ...]:
    """The places in a tensor of `shape` of flat `indices`, a tensor for each dim. As `torch.unravel_index`.

    TypeError for indices that are no integers, and for a shape that is not of ints; ValueError for negative sizes.
    """

def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """`chunk`; each part may be written in place. As `torch.unsafe_chunk`."""

def unsafe_split(input: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """`split`; each part may be written in place. As `torch.unsafe_split`."""

def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes`; each part may be written in place. As `torch.unsafe_split_with_sizes`."""

def unsqueeze(input: Tensor, dim: _int) -> Tensor:
    """With a dim of size 1 inserted at `dim`. As `torch.unsqueeze`."""

def unsqueeze_copy(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `unsqueeze` shows. As `torch.unsqueeze_copy`."""

def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> None:
    """Note that only deterministic algorithms are wanted. As PyTorch's; all are deterministic here."""

def vander(x: Tensor, N: _int | None = None, increasing: _bool = False) -> Tensor:
    """The matrix of the powers 0 ... N - 1 of `x`, highest first unless `increasing`. As `torch.vander`."""

@overload
def var(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The variance over `dim`, its divisor n - correction (1). As `torch.var`. RuntimeError for integers."""
@overload
def var(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: Number | None = None, unbiased: _bool | None = None, keepdim: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def var(input: Tensor, unbiased: _bool) -> Tensor: ...

def var_mean(input: Tensor, dim: _int | Sequence[_int] | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: Number | _complex | None = None) -> tuple[Tensor, Tensor]:
    """(variance, mean) over `dim`. As `torch.var_mean`."""

def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inner product of two vectors, the first one conjugated. As `torch.vdot`."""

def view_as_complex(input: Tensor) -> Tensor:
    """Complex numbers whose parts lie along the last dim, a view. As `torch.view_as_complex`, but for 16-bit floats."""

def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `view_as_complex` shows. As `torch.view_as_complex_copy`."""

def view_as_real(input: Tensor) -> Tensor:
    """The parts of complex numbers along a new last dim, a view. As `torch.view_as_real`."""

def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `view_as_real` shows. As `torch.view_as_real_copy`."""

def view_copy(input: Tensor, *shape: Sequence[_int], size: Sequence[_int] | None = None, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """A copy of what `view` shows. As `torch.view_copy`."""

def vmap(func: Callable[_P, _R], in_dims: _int | tuple[Any, ...] | dict[str, Any] | None = 0, out_dims: _int | tuple[_int | None, ...] | None = 0, randomness: str = 'error', *, chunk_size: _int | None = None) -> Callable[_P, _R]:
    """A function that applies `func` to each slice of its positional arguments, all at once. As `torch.func.vmap`.

    `in_dims` says along which dim each argument is sliced (None: not at all), `out_dims` where the results have the new
    dim; both may be nests like the arguments and results. `randomness`: whether random numbers inside are an error,
    "different" or the "same" for each slice. `chunk_size` slices are done at a time, all if None.

    Raises ValueError for dims that do not fit the arguments or results, and for slices of several sizes.
    """

def vsplit(input: Tensor, indices_or_sections: _int | Sequence[_int], /) -> tuple[Tensor, ...]:
    """`tensor_split` along dim 0, in equal parts. As `torch.vsplit`."""

def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors joined along the first dim, vectors as rows. As `torch.vstack`."""

@overload
def where(condition: Tensor) -> tuple[Tensor, ...]:
    """`input` where `condition` is true, else `other`; the true places if neither is given. As `torch.where`."""
@overload
def where(condition: Tensor, input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor: ...

def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...] | list[Any]) -> tuple[Any, ...]:
    """`carried = body_fn(*carried)` while `cond_fn(*carried)`. Returns the last. As `torch.while_loop`.

    carried_inputs: a tuple or list of tensors and numbers, whose shapes and dtypes stay. RuntimeError for others. See
    `graphc.while_loop`.

    >>> import eager as torch
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))
    (tensor(3), tensor([8., 8.]))
    """

def xlogy(input: Tensor | Number | _complex, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """input log(other); 0 where input is 0."""

def xlogy_(input: Tensor, other: Tensor | Number | _complex) -> Tensor:
    """`input.xlogy_(...)`. In-place form of `xlogy`. As `torch.xlogy_`."""

def zero_(input: Tensor) -> Tensor:
    """`input.zero_(...)`. Set every element to 0. As `torch.Tensor.zero_`. As `torch.zero_`."""

@overload
def zeros(*size: _int, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
    """Zeros. As `torch.zeros`."""
@overload
def zeros(size: Sequence[_int], *, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

def zeros_like(input: Tensor, *, dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False, memory_format: memory_format | None = None) -> Tensor:
    """Zeros in the shape and dtype of `input`. As `torch.zeros_like`."""
