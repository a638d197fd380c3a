# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""What `eager.core.tensor.Tensor` gets from the tables of names and the op registry."""

from builtins import bool as _bool, float as _float, int as _int
from collections.abc import Callable, Iterator, Sequence
from eager import return_types
from eager.core.dtypes import Size, dtype
from eager.core.layouts import layout as _layout, memory_format
from eager.core.tensor import Tensor
from eager.nn.hooks import RemovableHandle
from eager.rng.generator import Generator
from eager.storage import TypedStorage, UntypedStorage
from eager.types import Device, Number
from numpy import ndarray
from types import EllipsisType
from typing import Any, Literal, NoReturn, overload

Index = int | slice | EllipsisType | None | Tensor | ndarray | list[Any] | tuple[Any, ...]

class TensorMethods:
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix. As `torch.Tensor.H`. RuntimeError for other than a matrix."""

    @property
    def T(self) -> Tensor:
        """The dims in reverse order. As `torch.Tensor.T`, with its warning for what is no matrix."""

    def __abs__(self) -> Tensor: ...

    def __add__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __and__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __deepcopy__(self, memo: dict[_int, Any]) -> Tensor:
        """A copy of a leaf, its gradient and its memory; what shares memory here does so in the copy.

        RuntimeError for a tensor with history.
        """

    def __div__(self, other: Tensor | Number | complex) -> Tensor:
        """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[_int, _int] | None = None, dl_device: tuple[_int, _int] | None = None, copy: _bool | None = None) -> Any:
        """The tensor as a DLPack capsule. BufferError if it requires grad."""

    def __dlpack_device__(self) -> tuple[_int, _int]:
        """Where the memory is: (kDLCPU, 0)."""

    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]

    def __floordiv__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __ge__(self, other: Any) -> Tensor: ...

    def __getitem__(self, index: Index) -> Tensor:
        """The elements at `index`; a view where it has integers, slices, None and ... only. As `torch.Tensor.__getitem__`.

        Raises IndexError for an index out of bounds, too many indices, or what is no index.
        """

    def __gt__(self, other: Any) -> Tensor: ...

    def __iadd__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `add`."""

    def __iand__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_and`."""

    def __idiv__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `div`."""

    def __ifloordiv__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `floor_divide`."""

    def __ilshift__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_left_shift`."""

    def __imod__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `remainder`."""

    def __imul__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `mul`."""

    def __init__(self, *data: Any, device: Device = None, **own: Any) -> None:
        """`torch.Tensor(...)`: what `legacy` makes of the arguments. Nothing if `__new__` has made it."""

    def __invert__(self) -> Tensor:
        """~self. TypeError for floating point and complex tensors."""

    def __ior__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_or`."""

    def __ipow__(self, other: Tensor | Number | complex, /) -> Tensor:
        """In-place form of `pow`."""

    def __irshift__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_right_shift`."""

    def __isub__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `sub`."""

    def __iter__(self) -> Iterator[Tensor]:
        """The slices along the first dim. TypeError for a 0-d tensor."""

    def __itruediv__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `div`."""

    def __ixor__(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_xor`."""

    def __le__(self, other: Any) -> Tensor: ...

    def __lshift__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __lt__(self, other: Any) -> Tensor: ...

    def __matmul__(self, other: Tensor) -> Tensor: ...

    def __mod__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __mul__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]

    def __neg__(self) -> Tensor: ...

    def __or__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __pos__(self) -> Tensor:
        """`input` itself. As `torch.positive`. RuntimeError for bools."""

    def __pow__(self, other: Tensor | Number | complex) -> Tensor:
        """self ** other, which may be an ndarray."""

    def __radd__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rand__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rdiv__(self, other: Tensor | Number | complex) -> Tensor:
        """other / self as the reciprocal times `other`. As `torch.Tensor.__rdiv__`, the operator of Python 2."""

    def __reversed__(self) -> Tensor:
        """The slices along the first dim in reverse order, as a tensor; a 0-d tensor is returned as it is."""

    def __rfloordiv__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rlshift__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rmatmul__(self, other: Tensor) -> Tensor:
        """other @ self."""

    def __rmod__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rmul__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __ror__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rpow__(self, other: Tensor | Number | complex) -> Tensor:
        """other ** self."""

    def __rrshift__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rshift__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rsub__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __rtruediv__(self, other: Tensor | Number | complex) -> Tensor:
        """other / self. Of a number as PyTorch has it, the reciprocal times that: what backward needs is the result."""

    def __rxor__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __setitem__(self, index: Index, value: Tensor | Number | complex) -> None:
        """Write `value`, broadcast and cast, to the elements at `index`. As `torch.Tensor.__setitem__`.

        Raises RuntimeError for a leaf that requires grad or a value that does not broadcast, IndexError as `getitem` does.
        """

    def __sub__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __truediv__(self, other: Tensor | Number | complex) -> Tensor: ...

    def __xor__(self, other: Tensor | Number | complex) -> Tensor: ...

    def abs(self) -> Tensor:
        """The absolute value; of a complex number, its modulus."""

    def abs_(self) -> Tensor:
        """In-place form of `abs`."""

    def absolute(self) -> Tensor:
        """The absolute value; of a complex number, its modulus."""

    def absolute_(self) -> Tensor:
        """In-place form of `abs`."""

    def acos(self) -> Tensor:
        """The inverse cosine, in [0, pi]."""

    def acos_(self) -> Tensor:
        """In-place form of `acos`."""

    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine."""

    def acosh_(self) -> Tensor:
        """In-place form of `acosh`."""

    def add(self, other: Tensor | Number | complex, *, alpha: Number | complex = 1) -> Tensor:
        """input + alpha * other. As `torch.add`."""

    def add_(self, other: Tensor | Number | complex, *, alpha: Number | complex = 1) -> Tensor:
        """self += alpha * other. As `torch.Tensor.add_`."""

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """beta * input + alpha * (the sum of the products of two batches of matrices). As `torch.addbmm`."""

    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """In-place form of `addbmm`."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | complex = 1) -> Tensor:
        """input + value * tensor1 / tensor2. As `torch.addcdiv`. RuntimeError for a quotient of integers."""

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | complex = 1) -> Tensor:
        """self += value * tensor1 / tensor2. As `torch.Tensor.addcdiv_`."""

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | complex = 1) -> Tensor:
        """input + value * tensor1 * tensor2. As `torch.addcmul`."""

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | complex = 1) -> Tensor:
        """self += value * tensor1 * tensor2. As `torch.Tensor.addcmul_`."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2). As `torch.addmm`."""

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """In-place form of `addmm`."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """beta * input + alpha * (mat @ vec). As `torch.addmv`."""

    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """In-place form of `addmv`."""

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2). As `torch.addr`, which promotes dtypes."""

    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """In-place form of `addr`."""

    def adjoint(self) -> Tensor:
        """The conjugate transpose of the last two dims. As `torch.adjoint`."""

    def all(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """Whether every element over `dim` is nonzero, as bool, or as uint8 for uint8. As `torch.all`."""

    def allclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether `isclose` holds everywhere. As `torch.allclose`."""

    def amax(self, dim: _int | Sequence[_int] | None = (), keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """The largest element over `dim`; ties share the gradient. As `torch.amax`. IndexError for an empty reduction."""

    def amin(self, dim: _int | Sequence[_int] | None = (), keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """The smallest element over `dim`; ties share the gradient. As `torch.amin`. IndexError for an empty reduction."""

    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> return_types.aminmax:
        """The smallest and the largest element, over `dim` or all, as a named tuple (min, max). As `torch.aminmax`.

        RuntimeError or IndexError for an empty reduction, NotImplementedError for complex numbers.
        """

    def angle(self) -> Tensor:
        """The angle of complex numbers to the positive axis; 0 or pi for real ones. As `torch.angle`."""

    def any(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """Whether some element over `dim` is nonzero, as bool, or as uint8 for uint8. As `torch.any`."""

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element by `callable(element)`; slow. As `torch.Tensor.apply_`."""

    def arccos(self) -> Tensor:
        """The inverse cosine, in [0, pi]."""

    def arccos_(self) -> Tensor:
        """In-place form of `acos`."""

    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine."""

    def arccosh_(self) -> Tensor:
        """In-place form of `acosh`."""

    def arcsin(self) -> Tensor:
        """The inverse sine, in [-pi/2, pi/2]."""

    def arcsin_(self) -> Tensor:
        """In-place form of `asin`."""

    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine."""

    def arcsinh_(self) -> Tensor:
        """In-place form of `asinh`."""

    def arctan(self) -> Tensor:
        """The inverse tangent, in [-pi/2, pi/2]."""

    def arctan2(self, other: Tensor) -> Tensor:
        """The angle of the point (other, input), in [-pi, pi]."""

    def arctan2_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `atan2`."""

    def arctan_(self) -> Tensor:
        """In-place form of `atan`."""

    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent."""

    def arctanh_(self) -> Tensor:
        """In-place form of `atanh`."""

    def argmax(self, dim: _int | None = None, keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """The index of the first extreme element along `dim`, in the flattened tensor if None. As `torch.argmax`."""

    def argmin(self, dim: _int | None = None, keepdim: _bool = False, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """The index of the first extreme element along `dim`, in the flattened tensor if None. As `torch.argmin`."""

    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """The indices that sort `input` along `dim`. As `torch.argsort`."""

    def argwhere(self) -> Tensor:
        """The indices of the nonzero elements, a row each. As `torch.argwhere`."""

    def as_strided(self, size: Sequence[_int], stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """A view with any strides into the memory of `input`. As `torch.as_strided`.

        Elements that `input` itself does not show get no gradient. RuntimeError for places outside of the memory.
        """

    def as_strided_(self, size: Sequence[_int], stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """In-place form of `as_strided`: `self` shows the same memory in that shape."""

    def as_strided_scatter(self, src: Tensor, size: Sequence[_int], stride: _int | Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """`input` with what `as_strided` shows of it replaced by `src`. As `torch.as_strided_scatter`."""

    def as_subclass(self, cls: type[Tensor]) -> Tensor:
        """A view of `self` that is a `cls`, a subclass of Tensor; gradients flow. As `torch.Tensor.as_subclass`.

        No method of `cls` is called. TypeError for what is no subclass of Tensor.
        """

    def asin(self) -> Tensor:
        """The inverse sine, in [-pi/2, pi/2]."""

    def asin_(self) -> Tensor:
        """In-place form of `asin`."""

    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine."""

    def asinh_(self) -> Tensor:
        """In-place form of `asinh`."""

    def at_least(self, other: Tensor | Number | complex) -> Tensor:
        """input, at least `other`."""

    def at_least_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `at_least`."""

    def at_most(self, other: Tensor | Number | complex) -> Tensor:
        """input, at most `other`."""

    def at_most_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `at_most`."""

    def atan(self) -> Tensor:
        """The inverse tangent, in [-pi/2, pi/2]."""

    def atan2(self, other: Tensor) -> Tensor:
        """The angle of the point (other, input), in [-pi, pi]."""

    def atan2_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `atan2`."""

    def atan_(self) -> Tensor:
        """In-place form of `atan`."""

    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent."""

    def atanh_(self) -> Tensor:
        """In-place form of `atanh`."""

    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Tensor | Sequence[Tensor] | None = None) -> None:
        """Add the gradient of this tensor to `.grad` of the leaves it depends on. As `torch.Tensor.backward`."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """beta * input + alpha * bmm(batch1, batch2). As `torch.baddbmm`."""

    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """In-place form of `baddbmm`."""

    def bernoulli(self, p: _float | None = None, *, generator: Generator | None = None) -> Tensor:
        """Zeros and ones of the shape and dtype of `input`, which holds the probabilities unless `p` is given.

        Raises RuntimeError for a probability outside [0, 1], NotImplementedError for an integer `input`.
        """

    def bernoulli_(self, p: _float | Tensor = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill with ones with probability `p` (a number, or a tensor that broadcasts to this shape), else zeros."""

    def bfloat16(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.bfloat16; itself if it is. As `torch.Tensor.bfloat16`."""

    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """How often each number from 0 on occurs, or the sum of its `weights`. As `torch.bincount`.

        A graph is for one largest number.
        """

    def bitwise_and(self, other: Tensor | Number | complex) -> Tensor:
        """input and other, bit by bit."""

    def bitwise_and_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_and`."""

    def bitwise_left_shift(self, other: Tensor | Number | complex) -> Tensor:
        """The bits of `input`, `other` places up."""

    def bitwise_left_shift_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_left_shift`."""

    def bitwise_not(self) -> Tensor:
        """Each bit inverted; of bools, the logical not."""

    def bitwise_not_(self) -> Tensor:
        """In-place form of `bitwise_not`."""

    def bitwise_or(self, other: Tensor | Number | complex) -> Tensor:
        """input or other, bit by bit."""

    def bitwise_or_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_or`."""

    def bitwise_right_shift(self, other: Tensor | Number | complex) -> Tensor:
        """The bits of `input`, `other` places down."""

    def bitwise_right_shift_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_right_shift`."""

    def bitwise_xor(self, other: Tensor | Number | complex) -> Tensor:
        """input xor other, bit by bit."""

    def bitwise_xor_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `bitwise_xor`."""

    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches (B, N, M) and (B, M, P) of matrices. As `torch.bmm`."""

    def bool(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.bool; itself if it is. As `torch.Tensor.bool`."""

    def broadcast_to(self, size: Sequence[_int]) -> Tensor:
        """`input` expanded to `size`. As `torch.broadcast_to`."""

    def byte(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.uint8; itself if it is. As `torch.Tensor.byte`."""

    def cauchy_(self, median: _float = 0.0, sigma: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers of the Cauchy distribution."""

    def ccol_indices(self) -> Tensor:
        """Where each column begins, and the end of the last (*B, m + 1). As `torch.Tensor.ccol_indices`."""

    def cdouble(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.complex128; itself if it is. As `torch.Tensor.cdouble`."""

    def ceil(self) -> Tensor:
        """Each number as a whole one, rounded up."""

    def ceil_(self) -> Tensor:
        """In-place form of `ceil`."""

    def cfloat(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.complex64; itself if it is. As `torch.Tensor.cfloat`."""

    def char(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.int8; itself if it is. As `torch.Tensor.char`."""

    def cholesky(self, upper: _bool = False) -> Tensor:
        """The factor L of L L^H, or L^H. As `torch.cholesky`."""

    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """The inverse of A from its Cholesky factor. As `torch.cholesky_inverse`."""

    def cholesky_solve(self, L: Tensor, upper: _bool = False) -> Tensor:
        """X with AX = B from the Cholesky factor of A. As `torch.cholesky_solve`."""

    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` pieces of equal size along `dim`, the last perhaps smaller. As `torch.chunk`."""

    def clamp(self, min: Tensor | Number | complex | None = None, max: Tensor | Number | complex | None = None) -> Tensor:
        """`input` limited to [min, max], numbers or tensors; nan gives nan. As `torch.clamp`: gradient 1 at a bound.

        RuntimeError without bounds, and for a number that the dtype does not hold; NotImplementedError for complex numbers.
        """

    def clamp_(self, min: Tensor | Number | complex | None = None, max: Tensor | Number | complex | None = None) -> Tensor:
        """Limit `self` to [min, max]. As `torch.Tensor.clamp_`."""

    def clamp_max(self, max: Tensor | Number | complex) -> Tensor:
        """`input`, at most `max`. As `torch.clamp_max`."""

    def clamp_max_(self, max: Tensor | Number | complex) -> Tensor:
        """In-place form of `clamp_max`."""

    def clamp_min(self, min: Tensor | Number | complex) -> Tensor:
        """`input`, at least `min`. As `torch.clamp_min`."""

    def clamp_min_(self, min: Tensor | Number | complex) -> Tensor:
        """In-place form of `clamp_min`."""

    def clip(self, min: Tensor | Number | complex | None = None, max: Tensor | Number | complex | None = None) -> Tensor:
        """`input` limited to [min, max], numbers or tensors; nan gives nan. As `torch.clamp`: gradient 1 at a bound.

        RuntimeError without bounds, and for a number that the dtype does not hold; NotImplementedError for complex numbers.
        """

    def clip_(self, min: Tensor | Number | complex | None = None, max: Tensor | Number | complex | None = None) -> Tensor:
        """Limit `self` to [min, max]. As `torch.Tensor.clamp_`."""

    def clone(self, *, memory_format: memory_format | None = None) -> Tensor:
        """A copy through which gradients flow. As `torch.clone`."""

    def coalesce(self) -> Tensor:
        """`self`, of COO, with sorted indices and the sum of all values for one place. As `torch.Tensor.coalesce`."""

    def col_indices(self) -> Tensor:
        """The column of each element (*B, n). As `torch.Tensor.col_indices`."""

    def conj(self) -> Tensor:
        """The complex conjugate; a real tensor itself. As `torch.conj`, but computed at once."""

    def conj_physical(self) -> Tensor:
        """The complex conjugate; a real tensor itself. As `torch.conj_physical`."""

    def conj_physical_(self) -> Tensor:
        """In-place form of `conj_physical`."""

    def const_data_ptr(self) -> _int:
        """The address of the first element; 0 if there is none. As `torch.Tensor.data_ptr`."""

    def contiguous(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` if it lies in row-major (or the given) order in memory, else a copy. As `torch.Tensor.contiguous`."""

    def copy_(self, other: Tensor, non_blocking: _bool = False) -> Tensor:
        """Write `other`, broadcast and cast, into `self`. RuntimeError if it does not broadcast. As `Tensor.copy_`."""

    def copysign(self, other: Tensor | Number | complex) -> Tensor:
        """|input| with the sign of `other`."""

    def copysign_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `copysign`."""

    def corrcoef(self) -> Tensor:
        """The correlations of variables (rows) over observations (columns). As `torch.corrcoef`."""

    def cos(self) -> Tensor:
        """The cosine of radians."""

    def cos_(self) -> Tensor:
        """In-place form of `cos`."""

    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""

    def cosh_(self) -> Tensor:
        """In-place form of `cosh`."""

    def count_nonzero(self, dim: _int | Sequence[_int] | None = None) -> Tensor:
        """How many elements over `dim` are nonzero, as int64. As `torch.count_nonzero`."""

    def cov(self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """The covariances of variables (rows) over observations (columns). As `torch.cov`.

        `fweights`: how often each observation was made; `aweights`: how much it counts. RuntimeError for bools, more than
        two dims, and weights of other sizes, dtypes or signs.
        """

    def cpu(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` on the CPU; itself, if it is there. As `torch.Tensor.cpu`. NotImplementedError for a meta tensor."""

    def cross(self, other: Tensor, dim: _int | None = None) -> Tensor:
        """The cross products of vectors of length 3 along `dim`, the first of that size if None. As `torch.cross`."""

    def crow_indices(self) -> Tensor:
        """Where each row begins, and the end of the last (*B, m + 1). As `torch.Tensor.crow_indices`."""

    def cuda(self, device: Device = None, non_blocking: _bool = False, memory_format: memory_format | None = None) -> Tensor:
        """`self` on a GPU, the current one if none is named. As `torch.Tensor.cuda`. AssertionError where there is none."""

    def cummax(self, dim: _int) -> return_types.cummax:
        """(values, indices) of the largest element so far along `dim`, the last of equals. As `torch.cummax`."""

    def cummin(self, dim: _int) -> return_types.cummin:
        """(values, indices) of the smallest element so far along `dim`, the last of equals. As `torch.cummin`."""

    def cumprod(self, dim: _int, dtype: dtype | None = None) -> Tensor:
        """The running product along `dim`, in `dtype` if given. As `torch.cumprod`."""

    def cumprod_(self, dim: _int, dtype: dtype | None = None) -> Tensor:
        """In-place form of `cumprod`. RuntimeError for another `dtype`."""

    def cumsum(self, dim: _int, dtype: dtype | None = None) -> Tensor:
        """The running sum along `dim`, in `dtype` if given. As `torch.cumsum`."""

    def cumsum_(self, dim: _int, dtype: dtype | None = None) -> Tensor:
        """In-place form of `cumsum`. RuntimeError for another `dtype`."""

    def data_ptr(self) -> _int:
        """The address of the first element; 0 if there is none. As `torch.Tensor.data_ptr`."""

    def deg2rad(self) -> Tensor:
        """Each angle times 0.0174533. RuntimeError for complex numbers. As `torch.deg2rad`."""

    def deg2rad_(self) -> Tensor:
        """In-place form of `deg2rad`."""

    def dense_dim(self) -> _int:
        """The number of dims that are stored whole; all of a strided tensor. As `torch.Tensor.dense_dim`."""

    def det(self) -> Tensor:
        """The determinant of square matrices. As `torch.linalg.det`."""

    def detach(self) -> Tensor:
        """The same values, sharing memory, without history. As `torch.Tensor.detach`."""

    def detach_(self) -> Tensor:
        """Forget the history of `self`. As `torch.Tensor.detach_`."""

    def diag(self, diagonal: _int = 0) -> Tensor:
        """A vector as a diagonal matrix; of a matrix, its diagonal. As `torch.diag`."""

    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Matrices, in dims `dim1` and `dim2`, with `input`'s last dim on their diagonal. As `torch.diag_embed`."""

    def diagflat(self, offset: _int = 0) -> Tensor:
        """A matrix with all elements of `input` on its diagonal. As `torch.diagflat`."""

    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The diagonal of dims `dim1` and `dim2` as the last dim. As `torch.diagonal`."""

    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """`input` with the diagonal of two dims replaced by `src`. As `torch.diagonal_scatter`."""

    def diff(self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The n-th differences of neighbours along `dim`, of bools whether they differ. As `torch.diff`.

        RuntimeError for a negative n, a 0-d tensor, or a `prepend` or `append` of other sizes.
        """

    def digamma(self) -> Tensor:
        """The derivative of the logarithm of the gamma function."""

    def digamma_(self) -> Tensor:
        """In-place form of `digamma`."""

    def dim(self) -> _int:
        """The number of dims. As `torch.Tensor.dim`."""

    def dim_order(self) -> tuple[_int, ...]:
        """The dims from the one with the longest step in memory to the one with the shortest. As `Tensor.dim_order`."""

    def dist(self, other: Tensor, p: _float = 2) -> Tensor:
        """The p-norm of input - other. As `torch.dist`. RuntimeError for integers."""

    def div(self, other: Tensor | Number | complex, *, rounding_mode: str | None = None) -> Tensor:
        """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""

    def div_(self, other: Tensor | Number | complex, *, rounding_mode: str | None = None) -> Tensor:
        """In-place form of `div`."""

    def divide(self, other: Tensor | Number | complex, *, rounding_mode: str | None = None) -> Tensor:
        """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""

    def divide_(self, other: Tensor | Number | complex, *, rounding_mode: str | None = None) -> Tensor:
        """In-place form of `divide`."""

    def dot(self, tensor: Tensor) -> Tensor:
        """The inner product of two vectors. As `torch.dot`."""

    def double(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.float64; itself if it is. As `torch.Tensor.double`."""

    def dsplit(self, indices_or_sections: _int | Sequence[_int], /) -> tuple[Tensor, ...]:
        """`tensor_split` along dim 2, in equal parts. As `torch.dsplit`."""

    def eig(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Removed, as `torch.eig` is. RuntimeError."""

    def element_size(self) -> _int:
        """Bytes in an element. As `torch.Tensor.element_size`."""

    def eq(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input == other."""

    def eq_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `eq`."""

    def equal(self, other: Tensor) -> _bool:
        """Whether the two have the same shape and elements. As `torch.equal`."""

    def erf(self) -> Tensor:
        """The error function."""

    def erf_(self) -> Tensor:
        """In-place form of `erf`."""

    def erfc(self) -> Tensor:
        """1 - erf(input)."""

    def erfc_(self) -> Tensor:
        """In-place form of `erfc`."""

    def erfinv(self) -> Tensor:
        """The inverse of the error function."""

    def erfinv_(self) -> Tensor:
        """In-place form of `erfinv`."""

    def exp(self) -> Tensor:
        """e to the power `input`."""

    def exp2(self) -> Tensor:
        """2 to the power `input`."""

    def exp2_(self) -> Tensor:
        """In-place form of `exp2`."""

    def exp_(self) -> Tensor:
        """In-place form of `exp`."""

    @overload
    def expand(self, *sizes: _int) -> Tensor:
        """`self` repeated along dims of size 1, and new ones in front, to `sizes`; -1 keeps one. As in PyTorch."""
    @overload
    def expand(self, size: Sequence[_int]) -> Tensor: ...

    def expand_as(self, other: Tensor) -> Tensor:
        """`self` expanded to the shape of `other`. As `torch.Tensor.expand_as`."""

    def expm1(self) -> Tensor:
        """exp(input) - 1, exact near 0."""

    def expm1_(self) -> Tensor:
        """In-place form of `expm1`."""

    def exponential_(self, lambd: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with exponentially distributed numbers of rate `lambd`."""

    def fill_(self, value: Tensor | Number | complex) -> Tensor:
        """Set every element to `value`, a number or a 0-d tensor. As `torch.Tensor.fill_`."""

    def fill_diagonal_(self, fill_value: Number | complex, wrap: _bool = False) -> Tensor:
        """Set the main diagonal to a number; of a tall matrix, with `wrap`, that of each block. As in PyTorch."""

    def fix(self) -> Tensor:
        """Each number as a whole one, rounded towards 0."""

    def fix_(self) -> Tensor:
        """In-place form of `trunc`."""

    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Dims `start_dim` to `end_dim` made one; a 0-d tensor becomes 1-d. As `torch.flatten`."""

    @overload
    def flip(self, *dims: _int) -> Tensor:
        """The elements in reverse order along `dims`. As `torch.flip`."""
    @overload
    def flip(self, dims: Sequence[_int]) -> Tensor: ...

    def fliplr(self) -> Tensor:
        """The columns in reverse order. As `torch.fliplr`. RuntimeError for fewer than two dims."""

    def flipud(self) -> Tensor:
        """The rows in reverse order. As `torch.flipud`. RuntimeError for a 0-d tensor."""

    def float(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.float32; itself if it is. As `torch.Tensor.float`."""

    def float_power(self, exponent: Tensor | Number | complex) -> Tensor:
        """input ** exponent, computed in float64 or complex128. As `torch.float_power`."""

    def float_power_(self, exponent: Tensor | Number | complex) -> Tensor:
        """self ** exponent, for a tensor of float64 (complex128 included). As `torch.Tensor.float_power_`."""

    def floor(self) -> Tensor:
        """Each number as a whole one, rounded down."""

    def floor_(self) -> Tensor:
        """In-place form of `floor`."""

    def floor_divide(self, other: Tensor | Number | complex) -> Tensor:
        """input / other, rounded down."""

    def floor_divide_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `floor_divide`."""

    def fmax(self, other: Tensor) -> Tensor:
        """As `maximum`, but a number wins over nan. As `torch.fmax`."""

    def fmin(self, other: Tensor) -> Tensor:
        """As `minimum`, but a number wins over nan. As `torch.fmin`."""

    def fmod(self, other: Tensor | Number | complex) -> Tensor:
        """input modulo other, with the sign of `input`."""

    def fmod_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `fmod`."""

    def frac(self) -> Tensor:
        """What is behind the point, with the sign of the number. As `torch.frac`. NotImplementedError for integers."""

    def frac_(self) -> Tensor:
        """In-place form of `frac`."""

    def frexp(self) -> return_types.frexp:
        """Mantissas in [0.5, 1) and exponents of 2, as a named tuple. As `torch.frexp`. RuntimeError for integers."""

    def gather(self, dim: _int, index: Tensor, *, sparse_grad: _bool = False) -> Tensor:
        """result[i][j] = input[index[i][j]][j] for dim 0, and so on. As `torch.gather`. RuntimeError out of bounds."""

    def gcd(self, other: Tensor) -> Tensor:
        """The greatest common divisor."""

    def gcd_(self, other: Tensor) -> Tensor:
        """In-place form of `gcd`."""

    def ge(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input >= other."""

    def ge_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `ge`."""

    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Tensor:
        """Fill with the number of trials that the first success of probability `p` takes."""

    def geqrf(self) -> return_types.geqrf:
        """(a, tau): Householder's reflections that make R of `input`. As `torch.geqrf`. Eager only."""

    def ger(self, vec2: Tensor) -> Tensor:
        """The matrix of all products of two vectors. As `torch.outer`."""

    def get_device(self) -> _int:
        """The index of the device; -1 on the CPU, which has none. As `torch.Tensor.get_device`."""

    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor; None for a leaf. As `torch.Tensor.grad_fn`."""

    def greater(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input > other."""

    def greater_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `gt`."""

    def greater_equal(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input >= other."""

    def greater_equal_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `ge`."""

    def gt(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input > other."""

    def gt_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `gt`."""

    def half(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.float16; itself if it is. As `torch.Tensor.half`."""

    def hard_least(self, other: Tensor | Number | complex) -> Tensor:
        """input, at least `other`."""

    def hard_least_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `hard_least`."""

    def hard_most(self, other: Tensor | Number | complex) -> Tensor:
        """input, at most `other`."""

    def hard_most_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `hard_most`."""

    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """input where outside [-lambd, lambd], else 0. As `torch.nn.functional.hardshrink`."""

    def heaviside(self, values: Tensor) -> Tensor:
        """0 below 0, 1 above, `values` at 0. As `torch.heaviside`, which has no derivative.

        RuntimeError unless both have one dtype, which is not complex.
        """

    def heaviside_(self, values: Tensor) -> Tensor:
        """In-place form of `heaviside`."""

    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        """How many elements lie in each of `bins` equal bins from `min` to `max` (from the least to the greatest element if
        they are equal), in the dtype of `input`. As `torch.histc`.
        """

    def histogram(self, bins: _int | Sequence[_int] | Tensor | Sequence[Tensor] = 100, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> return_types.histogram:
        """(hist, bin_edges): the elements, or their weights, in each bin, the last one with its right edge.

        `bins`: a number, or the edges. `density`: divided by the total and by the widths of the bins. As `torch.histogram`.
        """

    def hsplit(self, indices_or_sections: _int | Sequence[_int], /) -> tuple[Tensor, ...]:
        """`tensor_split` along dim 1, in equal parts. As `torch.hsplit`."""

    def hypot(self, other: Tensor) -> Tensor:
        """sqrt(input**2 + other**2), without overflow."""

    def hypot_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `hypot`."""

    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind, of order 0."""

    def i0_(self) -> Tensor:
        """In-place form of `i0`."""

    def igamma(self, other: Tensor) -> Tensor:
        """The regularized lower incomplete gamma function. As `torch.igamma`: no gradient of `input`."""

    def igamma_(self, other: Tensor) -> Tensor:
        """In-place form of `igamma`."""

    def igammac(self, other: Tensor) -> Tensor:
        """The regularized upper incomplete gamma function. As `torch.igammac`: no gradient of `input`."""

    def igammac_(self, other: Tensor) -> Tensor:
        """In-place form of `igammac`."""

    @property
    def imag(self) -> Tensor:
        """The imaginary part, a view. As `torch.imag`. RuntimeError for a real tensor."""

    def index_add(self, dim: _int, index: Tensor, source: Tensor, *, alpha: Number | complex = 1) -> Tensor:
        """`input` with alpha * source added to the slices along `dim` that `index` lists. As `torch.index_add`."""

    def index_add_(self, dim: _int, index: Tensor, source: Tensor, *, alpha: Number | complex = 1) -> Tensor:
        """In-place form of `index_add`."""

    def index_copy(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """`input` with the slices along `dim` that `index` lists replaced by those of `source`. As `torch.index_copy`."""

    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """In-place form of `index_copy`."""

    def index_fill(self, dim: _int, index: Tensor, value: Tensor | Number | complex) -> Tensor:
        """`input` with the slices along `dim` that `index` lists set to `value`. As `torch.index_fill`."""

    def index_fill_(self, dim: _int, index: Tensor, value: Tensor | Number | complex) -> Tensor:
        """In-place form of `index_fill`."""

    def index_put(self, indices: tuple[Tensor | None, ...] | list[Tensor | None] | list[Tensor], values: Tensor, accumulate: _bool = False) -> Tensor:
        """`input` with `values` written (or added) at input[indices]. As `torch.index_put`."""

    def index_put_(self, indices: tuple[Tensor | None, ...] | list[Tensor | None] | list[Tensor], values: Tensor, accumulate: _bool = False) -> Tensor:
        """Write `values` to (or add them to) self[indices]. As `torch.Tensor.index_put_`."""

    def index_reduce(self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """`input` with the slices of `source` along `dim` reduced into those that `index` lists. As `torch.index_reduce`.

        `reduce`: "prod", "mean", "amax" or "amin". IndexError for an index out of range.
        """

    def index_reduce_(self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """In-place form of `index_reduce`."""

    def index_select(self, dim: _int, index: Tensor) -> Tensor:
        """The slices of `input` along `dim` that `index` lists. As `torch.index_select`. IndexError out of bounds."""

    def indices(self) -> Tensor:
        """The indices (sparse dims, n) of a coalesced COO tensor. As `torch.Tensor.indices`. RuntimeError otherwise."""

    def inner(self, other: Tensor) -> Tensor:
        """Products summed over the last dims of both. As `torch.inner`."""

    def int(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.int32; itself if it is. As `torch.Tensor.int`."""

    def integer_pow(self, exponent: Tensor | Number | complex) -> Tensor:
        """input to the power of a whole number."""

    def integer_pow_(self, exponent: Tensor | Number | complex) -> Tensor:
        """In-place form of `integer_pow`."""

    def inverse(self) -> Tensor:
        """The inverse of square matrices. As `torch.linalg.inv`. LinAlgError for a singular matrix."""

    def is_coalesced(self) -> _bool:
        """Whether the indices of a COO tensor are known to be sorted, and to differ. As `torch.Tensor.is_coalesced`."""

    def is_complex(self) -> _bool:
        """Whether the dtype is a complex one. As `torch.is_complex`."""

    def is_conj(self) -> _bool:
        """False: conjugation is never put off. As `torch.is_conj`."""

    def is_contiguous(self, *, memory_format: memory_format | None = None) -> _bool:
        """Whether the elements lie in row-major (or the given) order. As `torch.Tensor.is_contiguous`."""

    @property
    def is_cpu(self) -> _bool:
        """Whether the values are in the memory of the CPU."""

    @property
    def is_cuda(self) -> _bool:
        """Whether the tensor is on a GPU. As `torch.Tensor.is_cuda`."""

    def is_floating_point(self) -> _bool:
        """Whether the dtype is a floating one. As `torch.is_floating_point`."""

    is_hpu: _bool
    is_ipu: _bool
    @property
    def is_meta(self) -> _bool:
        """Whether `tensor` has no values."""

    is_mkldnn: _bool
    is_mps: _bool
    def is_neg(self) -> _bool:
        """False: negation is never put off. As `torch.is_neg`."""

    is_nested: _bool
    def is_nonzero(self) -> _bool:
        """Whether the one element is not 0. As `torch.is_nonzero`. RuntimeError for any other number of elements."""

    def is_pinned(self, device: Device = None) -> _bool:
        """Whether `pin_memory` has returned this tensor."""

    is_quantized: _bool
    def is_same_size(self, other: Tensor) -> _bool:
        """Whether the two have one shape. As `torch.Tensor.is_same_size`."""

    def is_set_to(self, tensor: Tensor) -> _bool:
        """Whether both show the same places of the same memory. As `torch.Tensor.is_set_to`."""

    def is_signed(self) -> _bool:
        """Whether the dtype has negative numbers. As `torch.is_signed`."""

    @property
    def is_sparse(self) -> _bool:
        """Whether the layout is COO. As `torch.Tensor.is_sparse`."""

    @property
    def is_sparse_csr(self) -> _bool:
        """Whether the layout is CSR. As `torch.Tensor.is_sparse_csr`."""

    is_vulkan: _bool
    @property
    def is_xla(self) -> _bool:
        """Whether the tensor is on a device that is named as XLA's. As `torch.Tensor.is_xla`."""

    @property
    def is_xpu(self) -> _bool:
        """Whether the tensor is on an XPU. As `torch.Tensor.is_xpu`."""

    def isclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """|input - other| <= atol + |rtol * other|, elementwise, or equal. As `torch.isclose`.

        RuntimeError for different dtypes and for negative tolerances.
        """

    def isfinite(self) -> Tensor:
        """Whether each element is neither inf, -inf nor nan."""

    def isfinite_(self) -> Tensor:
        """In-place form of `isfinite`."""

    def isinf(self) -> Tensor:
        """Whether each element is inf or -inf."""

    def isinf_(self) -> Tensor:
        """In-place form of `isinf`."""

    def isnan(self) -> Tensor:
        """Whether each element is nan."""

    def isnan_(self) -> Tensor:
        """In-place form of `isnan`."""

    def isneginf(self) -> Tensor:
        """Whether each element is -inf. RuntimeError for complex numbers. As `torch.isneginf`."""

    def isposinf(self) -> Tensor:
        """Whether each element is inf. RuntimeError for complex numbers. As `torch.isposinf`."""

    def isreal(self) -> Tensor:
        """Whether each element has no imaginary part. As `torch.isreal`."""

    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
        """The signal whose `stft` is input (frequencies, frames) or (B, frequencies, frames). As `torch.istft`."""

    @property
    def itemsize(self) -> _int:
        """Bytes in an element. As `torch.Tensor.element_size`."""

    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product. As `torch.kron`."""

    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> return_types.kthvalue:
        """(values, indices) of the `k`-th smallest element along `dim`, from 1. As `torch.kthvalue`."""

    @property
    def layout(self) -> _layout:
        """How elements are stored: `strided`, or a sparse layout. As `torch.Tensor.layout`."""

    def lcm(self, other: Tensor) -> Tensor:
        """The least common multiple."""

    def lcm_(self, other: Tensor) -> Tensor:
        """In-place form of `lcm`."""

    def ldexp(self, other: Tensor) -> Tensor:
        """input * 2 ** other. As `torch.ldexp`: without overflow on the way for a whole `other`."""

    def ldexp_(self, other: Tensor) -> Tensor:
        """In-place form of `ldexp`."""

    def le(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input <= other."""

    def le_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `le`."""

    def lerp(self, end: Tensor, weight: Tensor | Number | complex) -> Tensor:
        """input + weight * (end - input), counted from the nearer end, as `torch.lerp` does.

        RuntimeError unless the tensors have one dtype, NotImplementedError for integers.
        """

    def lerp_(self, end: Tensor, weight: Tensor | Number | complex) -> Tensor:
        """Move `self` towards `end` by the fraction `weight` of the way. As `torch.Tensor.lerp_`."""

    def less(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input < other."""

    def less_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `lt`."""

    def less_equal(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input <= other."""

    def less_equal_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `le`."""

    def lgamma(self) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""

    def lgamma_(self) -> Tensor:
        """In-place form of `lgamma`."""

    def log(self) -> Tensor:
        """The natural logarithm."""

    def log10(self) -> Tensor:
        """The logarithm to base 10."""

    def log10_(self) -> Tensor:
        """In-place form of `log10`."""

    def log1p(self) -> Tensor:
        """log(1 + input), exact near 0."""

    def log1p_(self) -> Tensor:
        """In-place form of `log1p`."""

    def log2(self) -> Tensor:
        """The logarithm to base 2."""

    def log2_(self) -> Tensor:
        """In-place form of `log2`."""

    def log_(self) -> Tensor:
        """In-place form of `log`."""

    def log_normal_(self, mean: _float = 1.0, std: _float = 2.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers whose logarithm is normal with this mean and deviation."""

    def log_softmax(self, dim: _int, dtype: dtype | None = None) -> Tensor:
        """log(softmax(input)) along `dim`, in `dtype` if given. As `torch.log_softmax`."""

    def logaddexp(self, other: Tensor) -> Tensor:
        """log(exp(input) + exp(other)), without overflow."""

    def logaddexp2(self, other: Tensor) -> Tensor:
        """log2(2**input + 2**other), without overflow."""

    def logaddexp2_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `logaddexp2`."""

    def logaddexp_(self, other: Tensor) -> Tensor:
        """In-place form of `logaddexp`."""

    def logcumsumexp(self, dim: _int) -> Tensor:
        """The logarithm of the running sum of exp(input) along `dim`, without overflow. As `torch.logcumsumexp`."""

    def logdet(self) -> Tensor:
        """The logarithm of the determinant; nan if that is negative. As `torch.logdet`."""

    def logical_and(self, other: Tensor) -> Tensor:
        """input and other, of what is not 0."""

    def logical_and_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `logical_and`."""

    def logical_not(self) -> Tensor:
        """Whether each element is 0."""

    def logical_not_(self) -> Tensor:
        """In-place form of `logical_not`."""

    def logical_or(self, other: Tensor) -> Tensor:
        """input or other, of what is not 0."""

    def logical_or_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `logical_or`."""

    def logical_xor(self, other: Tensor) -> Tensor:
        """input xor other, of what is not 0."""

    def logical_xor_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `logical_xor`."""

    def logit(self, eps: _float | None = None) -> Tensor:
        """log(input / (1 - input)), of `input` limited to [eps, 1 - eps] if that is given. As `torch.logit`."""

    def logit_(self, eps: _float | None = None) -> Tensor:
        """In-place form of `logit`."""

    def logsumexp(self, dim: _int | Sequence[_int] | None, keepdim: _bool = False) -> Tensor:
        """log(sum(exp(input))) over `dim`, without overflow. As `torch.logsumexp`."""

    def long(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.int64; itself if it is. As `torch.Tensor.long`."""

    def lstsq(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Removed, as `torch.lstsq` is. RuntimeError."""

    def lt(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input < other."""

    def lt_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `lt`."""

    @overload
    def lu(self, pivot: _bool = True, get_infos: Literal[False] = False) -> tuple[Tensor, Tensor]:
        """(LU, pivots), and with `get_infos` the number of the first zero pivot. As `torch.lu`."""
    @overload
    def lu(self, pivot: _bool = True, *, get_infos: Literal[True]) -> tuple[Tensor, Tensor, Tensor]: ...

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """X with AX = b from what `lu` gives of A. As `torch.lu_solve`."""

    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of the last two dims. As `torch.adjoint`."""

    @property
    def mT(self) -> Tensor:
        """The last two dims exchanged. As `torch.Tensor.mT`. RuntimeError for a vector; a number as it is, deprecated."""

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Replace each element by `callable(element, element of x, element of y)`; slow. As `torch.Tensor.map2_`."""

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replace each element by `callable(element, element of tensor)`; slow. As `torch.Tensor.map_`."""

    def masked_fill(self, mask: Tensor, value: Tensor | Number | complex) -> Tensor:
        """`input` with `value` where `mask` is true, in the dtype of `input`. As `torch.masked_fill`."""

    def masked_fill_(self, mask: Tensor, value: Tensor | Number | complex) -> Tensor:
        """Set the elements where `mask` is true to `value`. As `torch.Tensor.masked_fill_`."""

    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """`input` with the elements where `mask` is true replaced by those of `source` in order. As `torch.masked_scatter`.

        RuntimeError if `source` has too few elements.
        """

    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """In-place form of `masked_scatter`."""

    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where `mask` is true. As `torch.masked_select`. A graph is for one number of them."""

    def matmul(self, other: Tensor) -> Tensor:
        """The product of vectors, matrices or batches of matrices. As `torch.matmul`. RuntimeError if sizes do not fit."""

    def matrix_exp(self) -> Tensor:
        """The exponential function of square matrices. As `torch.linalg.matrix_exp`."""

    def matrix_power(self, n: _int) -> Tensor:
        """The `n`-th power of square matrices, of the inverse if negative. As `torch.linalg.matrix_power`."""

    @overload
    def max(self) -> Tensor:
        """The max of all elements; over `dim`, a named tuple (values, indices), whose gradient goes to the element picked; of two tensors, elementwise. As `torch.max`."""
    @overload
    def max(self, dim: _int, keepdim: _bool = False) -> return_types.max: ...
    @overload
    def max(self, other: Tensor) -> Tensor: ...

    def maximum(self, other: Tensor) -> Tensor:
        """The larger of two numbers; nan if one of them is."""

    def maximum_(self, other: Tensor) -> Tensor:
        """In-place form of `maximum`."""

    def mean(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, axis: _int | Sequence[_int] | None = None, keepdims: _bool = False) -> Tensor:
        """The mean over `dim`, over everything if None. As `torch.mean`. RuntimeError for integers without `dtype`."""

    @overload
    def median(self) -> Tensor:
        """The lower median: of all elements, or (values, indices) along `dim`. As `torch.median`."""
    @overload
    def median(self, dim: _int, keepdim: _bool = False) -> return_types.median: ...

    @overload
    def min(self) -> Tensor:
        """The min of all elements; over `dim`, a named tuple (values, indices), whose gradient goes to the element picked; of two tensors, elementwise. As `torch.min`."""
    @overload
    def min(self, dim: _int, keepdim: _bool = False) -> return_types.min: ...
    @overload
    def min(self, other: Tensor) -> Tensor: ...

    def minimum(self, other: Tensor) -> Tensor:
        """The smaller of two numbers; nan if one of them is."""

    def minimum_(self, other: Tensor) -> Tensor:
        """In-place form of `minimum`."""

    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices. As `torch.mm`."""

    def mode(self, dim: _int = -1, keepdim: _bool = False) -> return_types.mode:
        """(values, indices) of the most frequent element along `dim`, the smallest of them. As `torch.mode`."""

    def moveaxis(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """Dims `source` moved to the places `destination`, the others in their order. As `torch.movedim`."""

    def movedim(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """Dims `source` moved to the places `destination`, the others in their order. As `torch.movedim`."""

    def msort(self) -> Tensor:
        """`input` sorted along its first dim. As `torch.msort`."""

    def mul(self, other: Tensor | Number | complex) -> Tensor:
        """input * other."""

    def mul_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `mul`."""

    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None) -> Tensor:
        """Indices drawn with probabilities in proportion to the last dim of `input`. As `torch.multinomial`.

        input: (n,) or (m, n), floating; returns (num_samples,) or (m, num_samples), int64. Raises RuntimeError for any
        other shape or dtype, for a negative, infinite or nan entry, for a sum of zero, and for more samples than entries
        without `replacement`.
        """

    def multiply(self, other: Tensor | Number | complex) -> Tensor:
        """input * other."""

    def multiply_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `mul`."""

    def mv(self, vec: Tensor) -> Tensor:
        """The product of a matrix and a vector. As `torch.mv`."""

    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension `p` >= 1. As `torch.mvlgamma`."""

    def mvlgamma_(self, p: _int) -> Tensor:
        """In-place form of `mvlgamma`."""

    def nan_to_num(self, nan: _float | None = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """`input` with numbers for nan and infinities: by default 0 and the largest there are. As `torch.nan_to_num`."""

    def nan_to_num_(self, nan: _float | None = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """In-place form of `nan_to_num`."""

    def nanmean(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: dtype | None = None) -> Tensor:
        """The mean over `dim` of what is not nan. As `torch.nanmean`. RuntimeError for integers and complex numbers."""

    @overload
    def nanmedian(self) -> Tensor:
        """The lower median, of what is not nan: of all elements, or (values, indices) along `dim`. As `torch.nanmedian`."""
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool = False) -> return_types.nanmedian: ...

    def nanquantile(self, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear') -> Tensor:
        """The `q`-quantiles along `dim`, of what is not nan, of all elements if None; a vector `q` is the first dim of the result. As `torch.nanquantile`."""

    def nansum(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: dtype | None = None) -> Tensor:
        """The sum over `dim`, nan counting as 0. As `torch.nansum`. RuntimeError for complex numbers."""

    def narrow(self, dim: _int, start: _int | Tensor, length: _int) -> Tensor:
        """`length` elements along `dim`, from `start` on. As `torch.narrow`. RuntimeError if there are fewer."""

    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        """A copy of `length` elements along `dim`, from `start` on. As `torch.Tensor.narrow_copy`."""

    @property
    def nbytes(self) -> _int:
        """Bytes in all elements. As `torch.Tensor.nbytes`. RuntimeError for a sparse tensor."""

    def ndimension(self) -> _int:
        """The number of dims. As `torch.Tensor.dim`."""

    def ne(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input != other."""

    def ne_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `ne`."""

    def neg(self) -> Tensor:
        """-input."""

    def neg_(self) -> Tensor:
        """In-place form of `neg`."""

    def negative(self) -> Tensor:
        """-input."""

    def negative_(self) -> Tensor:
        """In-place form of `neg`."""

    def nelement(self) -> _int:
        """The number of elements. As `torch.numel`."""

    def new(self, *data: Any, device: Device = None) -> Tensor:
        """A tensor of the dtype of `self`, of given sizes or data. As `torch.Tensor.new`."""

    @overload
    def new_empty(self, *size: _int, dtype: dtype | None = None, layout: _layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
        """In the dtype of `self`. As `torch.Tensor.new_empty`."""
    @overload
    def new_empty(self, size: Sequence[_int], *, dtype: dtype | None = None, layout: _layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

    def new_empty_strided(self, size: Sequence[_int], stride: _int | Sequence[_int], *, dtype: dtype | None = None, layout: _layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
        """`empty_strided` in the dtype of `self`. As `torch.Tensor.new_empty_strided`."""

    def new_full(self, size: Sequence[_int], fill_value: Tensor | Number | complex, *, dtype: dtype | None = None, layout: _layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
        """`fill_value` in shape `size`, in the dtype of `self`. As `torch.Tensor.new_full`."""

    @overload
    def new_ones(self, *size: _int, dtype: dtype | None = None, layout: _layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
        """In the dtype of `self`. As `torch.Tensor.new_ones`."""
    @overload
    def new_ones(self, size: Sequence[_int], *, dtype: dtype | None = None, layout: _layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

    def new_tensor(self, data: Any, *, dtype: dtype | None = None, device: Device = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
        """A copy of `data` in the dtype of `self`. As `torch.Tensor.new_tensor`."""

    @overload
    def new_zeros(self, *size: _int, dtype: dtype | None = None, layout: _layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor:
        """In the dtype of `self`. As `torch.Tensor.new_zeros`."""
    @overload
    def new_zeros(self, size: Sequence[_int], *, dtype: dtype | None = None, layout: _layout | None = None, device: Device = None, pin_memory: _bool = False, requires_grad: _bool = False) -> Tensor: ...

    def nextafter(self, other: Tensor) -> Tensor:
        """The next number after `input` towards `other`."""

    def nextafter_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `nextafter`."""

    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """The indices of nonzero elements: rows of an int64 matrix, or one vector a dim. As `torch.nonzero`.

        A graph is for one number of them.
        """
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...

    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor:
        """The indices of the first `size` nonzero elements, rows of `fill_value` where there are fewer.

        As `torch.nonzero_static`. RuntimeError for a negative `size`.
        """

    def norm(self, p: _float | str | None = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: dtype | None = None) -> Tensor:
        """The vector norm of order `p` over `dim`, over everything if None; its gradient at 0 is 0. As `torch.norm`.

        "nuc" is the sum of the singular values of the matrices in the two dims `dim`.
        """

    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with normal numbers."""

    def not_equal(self, other: Tensor | Number | complex) -> Tensor:
        """Whether input != other."""

    def not_equal_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `ne`."""

    def numel(self) -> _int:
        """The number of elements. As `torch.numel`."""

    def orgqr(self, tau: Tensor) -> Tensor:
        """The first columns of a product of Householder reflections. As `torch.linalg.householder_product`."""

    def ormqr(self, tau: Tensor, other: Tensor, left: _bool = True, transpose: _bool = False) -> Tensor:
        """The product of the square Q that `geqrf` gives, or of its adjoint, and `other`. As `torch.ormqr`."""

    def outer(self, vec2: Tensor) -> Tensor:
        """The matrix of all products of two vectors. As `torch.outer`."""

    @overload
    def permute(self, *dims: _int) -> Tensor:
        """The dims in the order `dims`. As `torch.permute`."""
    @overload
    def permute(self, dims: Sequence[_int]) -> Tensor: ...

    def pin_memory(self, device: Device = None) -> Tensor:
        """`self`, in memory from which an accelerator copies faster: JAX pins it itself. As `torch.Tensor.pin_memory`.

        RuntimeError where there is no accelerator, and for a tensor that is not on the CPU.
        """

    def pinverse(self, rcond: _float = 1e-15) -> Tensor:
        """The pseudoinverse. As `torch.pinverse`."""

    def polygamma(self, n: _int) -> Tensor:
        """The n-th derivative of `digamma`. As `torch.Tensor.polygamma`."""

    def polygamma_(self, n: _int) -> Tensor:
        """In-place form of `polygamma`."""

    def positive(self) -> Tensor:
        """`input` itself. As `torch.positive`. RuntimeError for bools."""

    def positive_(self) -> Tensor:
        """In-place form of `positive`."""

    def pow(self, exponent: Tensor | Number | complex) -> Tensor:
        """input ** exponent. As `torch.pow`. RuntimeError for integers with a negative integer number as exponent."""

    def pow_(self, exponent: Tensor | Number | complex) -> Tensor:
        """In-place form of `pow`."""

    def prelu(self, weight: Tensor) -> Tensor:
        """input where positive, else weight * input; a weight a channel, or one for all. As `torch.nn.functional.prelu`."""

    def prod(self, dim: _int | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """The product over `dim`, over everything if None. As `torch.prod`."""

    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """`input` with `source` written (or added) at `index` of its flattened elements. As `torch.put`.

        IndexError for an index out of range or another number of elements, RuntimeError for other dtypes.
        """

    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """In-place form of `put`."""

    def qr(self, some: _bool = True) -> return_types.qr:
        """(Q, R), reduced with `some`. As `torch.qr`."""

    def quantile(self, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear') -> Tensor:
        """The `q`-quantiles along `dim`, of all elements if None; a vector `q` is the first dim of the result. As `torch.quantile`."""

    def rad2deg(self) -> Tensor:
        """Each angle times 57.2958. RuntimeError for complex numbers. As `torch.rad2deg`."""

    def rad2deg_(self) -> Tensor:
        """In-place form of `rad2deg`."""

    def random_(self, from_: _int | None = None, to: _int | None = None, *, generator: Generator | None = None) -> Tensor:
        """Fill with integers: all that the dtype holds, those below `random_(to)`, or those in [from_, to)."""

    def ravel(self) -> Tensor:
        """All elements in one dim, a view if they lie in order in memory. As `torch.ravel`."""

    @property
    def real(self) -> Tensor:
        """The real part, a view; a real tensor itself. As `torch.real`."""

    def reciprocal(self) -> Tensor:
        """1 / input."""

    def reciprocal_(self) -> Tensor:
        """In-place form of `reciprocal`."""

    def register_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle:
        """Call `hook(grad)` each time a gradient with respect to this tensor has been computed; a Tensor that it returns
        takes the gradient's place. As `torch.Tensor.register_hook`. RuntimeError for a tensor that requires no grad.
        """

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` each time `.grad` of this leaf has been written. As in PyTorch."""

    def relu(self) -> Tensor:
        """max(input, 0)."""

    def relu_(self) -> Tensor:
        """In-place form of `relu`."""

    def remainder(self, other: Tensor | Number | complex) -> Tensor:
        """input modulo other, with the sign of `other`."""

    def remainder_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `remainder`."""

    def renorm(self, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """The slices along `dim` whose p-norm exceeds `maxnorm` scaled down to it. As `torch.renorm`.

        RuntimeError for p <= 0, a negative maxnorm, or fewer than two dims.
        """

    def renorm_(self, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """In-place form of `renorm`."""

    @overload
    def repeat(self, *repeats: _int) -> Tensor:
        """`self` tiled `repeats` times along each dim, new dims in front. As `torch.Tensor.repeat`."""
    @overload
    def repeat(self, repeats: Sequence[_int]) -> Tensor: ...

    def repeat_interleave(self, repeats: _int | Tensor, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
        """Each slice along `dim` (each element, if None) `repeats` times in a row. As `torch.repeat_interleave`.

        Of counts alone, each place as often as its count says. `output_size` is how many there will be.
        """

    @overload
    def reshape(self, *shape: _int) -> Tensor:
        """The elements in row-major order in `shape`; one size may be -1. Shares memory if it can. As `torch.reshape`."""
    @overload
    def reshape(self, shape: Sequence[_int]) -> Tensor: ...

    def reshape_as(self, other: Tensor) -> Tensor:
        """`self` in the shape of `other`. As `torch.Tensor.reshape_as`."""

    @overload
    def resize_(self, *sizes: _int, memory_format: memory_format | None = None) -> Tensor:
        """Give `self` other sizes, over its own memory as far as that goes. As `torch.Tensor.resize_`.

        New elements are not initialized (here they are zero). RuntimeError for a tensor that requires grad.
        """
    @overload
    def resize_(self, size: Sequence[_int], *, memory_format: memory_format | None = None) -> Tensor: ...

    def resize_as_(self, the_template: Tensor, memory_format: memory_format | None = None) -> Tensor:
        """`resize_` to the sizes of another tensor. As `torch.Tensor.resize_as_`."""

    def resize_as_sparse_(self, the_template: Tensor) -> Tensor:
        """`sparse_resize_` to the shape of another COO tensor. As `torch.resize_as_sparse_`."""

    def resolve_conj(self) -> Tensor:
        """`input`: conjugation is never put off. As `torch.resolve_conj`."""

    def resolve_neg(self) -> Tensor:
        """`input`: negation is never put off. As `torch.resolve_neg`."""

    def retain_grad(self) -> None:
        """Let `.grad` of this non-leaf tensor be filled by backward(). As `torch.Tensor.retain_grad`."""

    @property
    def retains_grad(self) -> _bool:
        """Whether this is a non-leaf tensor whose `.grad` backward() fills. As `torch.Tensor.retains_grad`."""

    def roll(self, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] = ()) -> Tensor:
        """The elements moved on by `shifts` along `dims`, round the end; flattened if None. As `torch.roll`."""

    def rot90(self, k: _int = 1, dims: Sequence[_int] = (0, 1)) -> Tensor:
        """`input` turned by k times 90 degrees in the plane of two dims. As `torch.rot90`."""

    def round(self, *, decimals: _int = 0) -> Tensor:
        """The nearest multiple of 10 ** -decimals, the even one if two are. As `torch.round`."""

    def round_(self, *, decimals: _int = 0) -> Tensor:
        """In-place form of `round`."""

    def row_indices(self) -> Tensor:
        """The row of each element (*B, n). As `torch.Tensor.row_indices`."""

    def rsqrt(self) -> Tensor:
        """1 / sqrt(input)."""

    def rsqrt_(self) -> Tensor:
        """In-place form of `rsqrt`."""

    def rsub(self, other: Tensor | Number | complex, *, alpha: Number | complex = 1) -> Tensor:
        """other - alpha * input. As `torch.rsub`."""

    @overload
    def scatter(self, dim: _int, index: Tensor, src: Tensor | Number | complex, *, reduce: str | None = None) -> Tensor:
        """`input` with each src[i][j], or `value`, written at [index[i][j]][j] for dim 0, and so on. As `torch.scatter`.

        With `reduce`, "add" or "multiply", combined with what is there.
        """
    @overload
    def scatter(self, dim: _int, index: Tensor, *, value: Number | complex, reduce: str | None = None) -> Tensor: ...

    @overload
    def scatter_(self, dim: _int, index: Tensor, src: Tensor | Number | complex, *, reduce: str | None = None) -> Tensor:
        """In-place form of `scatter`."""
    @overload
    def scatter_(self, dim: _int, index: Tensor, *, value: Number | complex, reduce: str | None = None) -> Tensor: ...

    def scatter_add(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """`input` with each src[i][j] added at [index[i][j]][j] for dim 0, and so on. As `torch.scatter_add`."""

    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """In-place form of `scatter_add`."""

    def scatter_reduce(self, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """`input` with the elements src[i][j] reduced into [index[i][j]][j] for dim 0, and so on.

        `reduce`: "sum", "prod", "mean", "amax" or "amin"; without `include_self`, of the elements of `src` alone where
        there are any. As `torch.scatter_reduce`. RuntimeError for an index out of bounds.
        """

    def scatter_reduce_(self, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """In-place form of `scatter_reduce`."""

    def select(self, dim: _int, index: _int) -> Tensor:
        """The slice number `index` along `dim`, without it. As `torch.select`. IndexError if there is none."""

    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor:
        """`input` with slice number `index` along `dim` replaced by `src`. As `torch.select_scatter`."""

    def set_(self, source: Any = None, storage_offset: _int = 0, size: Sequence[_int] = (), stride: _int | Sequence[_int] = ()) -> Tensor:
        """Let the tensor show other memory: that of a tensor, or of a storage at an offset. As `torch.Tensor.set_`."""

    def sgn(self) -> Tensor:
        """z / |z|, 0 for 0; the sign of a real number. As `torch.sgn`."""

    def sgn_(self) -> Tensor:
        """In-place form of `sgn`."""

    def short(self, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` as torch.int16; itself if it is. As `torch.Tensor.short`."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-input))."""

    def sigmoid_(self) -> Tensor:
        """In-place form of `sigmoid`."""

    def sign(self) -> Tensor:
        """-1, 0 or 1: the sign of each element."""

    def sign_(self) -> Tensor:
        """In-place form of `sign`."""

    def signbit(self) -> Tensor:
        """Whether the sign bit is set: of negative numbers and -0.0."""

    def signbit_(self) -> Tensor:
        """In-place form of `signbit`."""

    def sin(self) -> Tensor:
        """The sine of radians."""

    def sin_(self) -> Tensor:
        """In-place form of `sin`."""

    def sinc(self) -> Tensor:
        """sin(pi input) / (pi input), and 1 at 0."""

    def sinc_(self) -> Tensor:
        """In-place form of `sinc`."""

    def sinh(self) -> Tensor:
        """The hyperbolic sine."""

    def sinh_(self) -> Tensor:
        """In-place form of `sinh`."""

    @overload
    def size(self, dim: None = None) -> Size:
        """The shape, or its entry `dim`. As `torch.Tensor.size`."""
    @overload
    def size(self, dim: _int) -> _int: ...

    def slice_inverse(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """The tensor of `src`'s memory of which `slice(dim, start, end, step)` is `input`. As `torch.slice_inverse`."""

    def slice_scatter(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """`input` with input[start:end:step] along `dim` replaced by `src`. As `torch.slice_scatter`."""

    def slogdet(self) -> return_types.slogdet:
        """(sign, logabsdet) of the determinant. As `torch.slogdet`."""

    def smm(self, mat: Tensor) -> Tensor:
        """The product of a sparse and a strided matrix, as a sparse tensor of all its elements. As `torch.smm`."""

    def softmax(self, dim: _int, dtype: dtype | None = None) -> Tensor:
        """exp(input) normalized to sum 1 along `dim`, in `dtype` if given. As `torch.softmax`."""

    def softplus(self) -> Tensor:
        """log(1 + exp(input))."""

    def softplus_(self) -> Tensor:
        """In-place form of `softplus`."""

    def solve(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Removed, as `torch.solve` is. RuntimeError."""

    def sort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> return_types.sort:
        """(values, indices) in order along `dim`; equal elements keep their order. As `torch.sort`."""

    def sparse_dim(self) -> _int:
        """The number of dims that have indices; 0 of a strided tensor. As `torch.Tensor.sparse_dim`."""

    def sparse_mask(self, mask: Tensor) -> Tensor:
        """The elements of `self` where the sparse `mask` has elements. As `torch.Tensor.sparse_mask`."""

    def sparse_resize_(self, size: Sequence[_int], sparse_dim: _int, dense_dim: _int) -> Tensor:
        """Give a COO tensor another shape, larger where it has elements. As `torch.Tensor.sparse_resize_`."""

    def sparse_resize_and_clear_(self, size: Sequence[_int], sparse_dim: _int, dense_dim: _int) -> Tensor:
        """Give a COO tensor another shape, and no elements. As `torch.Tensor.sparse_resize_and_clear_`."""

    def split(self, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along `dim`: of `split_size` each (the last may be smaller), or of the sizes listed. As `torch.split`."""

    def split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along `dim` of the sizes listed. As `torch.split_with_sizes`. RuntimeError unless they fill it."""

    def sqrt(self) -> Tensor:
        """The square root."""

    def sqrt_(self) -> Tensor:
        """In-place form of `sqrt`."""

    def square(self) -> Tensor:
        """input * input."""

    def square_(self) -> Tensor:
        """In-place form of `square`."""

    def squeeze(self, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """Without the dims of size 1: all, or those among `dim`. As `torch.squeeze`."""

    def squeeze_(self, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = None) -> Tensor:
        """In-place form of `squeeze`: `self` shows the same memory in that shape."""

    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number | complex = 1, alpha: Number | complex = 1) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2) of sparse `input` and `mat1`, sparse. As `torch.sspaddmm`."""

    @overload
    def std(self, dim: _int | Sequence[_int] | None, unbiased: _bool, keepdim: _bool = False) -> Tensor:
        """The standard deviation over `dim`, divisor n - correction (1). As `torch.std`. RuntimeError for integers."""
    @overload
    def std(self, dim: _int | Sequence[_int] | None = None, *, correction: Number | None = None, unbiased: _bool | None = None, keepdim: _bool = False) -> Tensor: ...
    @overload
    def std(self, unbiased: _bool) -> Tensor: ...

    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
        """Fourier transforms of overlapping frames of input (L) or (B, L): (B, frequencies, frames). As `torch.stft`."""

    def storage(self) -> TypedStorage:
        """The memory behind the tensor, as elements of its dtype. As `torch.Tensor.storage`."""

    def storage_offset(self) -> _int:
        """Where the first element lies in the memory, in elements. As `torch.Tensor.storage_offset`."""

    @overload
    def stride(self, dim: None = None) -> tuple[_int, ...]:
        """The step in elements along each dim, or along `dim`. As `torch.Tensor.stride`."""
    @overload
    def stride(self, dim: _int) -> _int: ...

    def sub(self, other: Tensor | Number | complex, *, alpha: Number | complex = 1) -> Tensor:
        """input - alpha * other. As `torch.sub`."""

    def sub_(self, other: Tensor | Number | complex, *, alpha: Number | complex = 1) -> Tensor:
        """self -= alpha * other. As `torch.Tensor.sub_`."""

    def subtract(self, other: Tensor | Number | complex, *, alpha: Number | complex = 1) -> Tensor:
        """input - alpha * other. As `torch.sub`."""

    def subtract_(self, other: Tensor | Number | complex, *, alpha: Number | complex = 1) -> Tensor:
        """self -= alpha * other. As `torch.Tensor.sub_`."""

    def sum(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, axis: _int | Sequence[_int] | None = None, keepdims: _bool = False) -> Tensor:
        """The sum over `dim`, over everything if None; integers and bools are summed in int64. As `torch.sum`."""

    @overload
    def sum_to_size(self, *size: _int) -> Tensor:
        """`self` summed over the dims along which `size` would have to be expanded. As `torch.Tensor.sum_to_size`."""
    @overload
    def sum_to_size(self, size: Sequence[_int], /) -> Tensor: ...

    def svd(self, some: _bool = True, compute_uv: _bool = True) -> return_types.svd:
        """(U, S, V) with input = U diag(S) V^H. As `torch.svd`."""

    def swapaxes(self, dim0: _int, dim1: _int) -> Tensor:
        """With `dim0` and `dim1` exchanged. As `torch.transpose`."""

    def swapaxes_(self, dim0: _int, dim1: _int) -> Tensor:
        """In-place form of `swapaxes`: `self` shows the same memory in that shape."""

    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """With `dim0` and `dim1` exchanged. As `torch.transpose`."""

    def swapdims_(self, dim0: _int, dim1: _int) -> Tensor:
        """In-place form of `swapdims`: `self` shows the same memory in that shape."""

    def symeig(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Removed, as `torch.symeig` is. RuntimeError."""

    def t(self) -> Tensor:
        """The transpose of a matrix; a vector or number as it is. As `torch.t`. RuntimeError for more than two dims."""

    def t_(self) -> Tensor:
        """In-place form of `t`: `self` shows the same memory in that shape."""

    def take(self, index: Tensor) -> Tensor:
        """The elements at `index` of the flattened `input`. As `torch.take`. IndexError for one out of range."""

    def take_along_dim(self, indices: Tensor, dim: _int | None = None) -> Tensor:
        """`gather` with sizes broadcast; of the flattened tensor without `dim`. As `torch.take_along_dim`."""

    def tan(self) -> Tensor:
        """The tangent of radians."""

    def tan_(self) -> Tensor:
        """In-place form of `tan`."""

    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """In-place form of `tanh`."""

    def tensor_split(self, indices_or_sections: _int | Sequence[_int] | Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along `dim`: that many of nearly equal size, or cut at the indices listed. As `torch.tensor_split`."""

    @overload
    def tile(self, *dims: _int) -> Tensor:
        """As `repeat`, with ones put in front of too few counts. As `torch.tile`."""
    @overload
    def tile(self, dims: Sequence[_int]) -> Tensor: ...

    @overload
    def to(self, dtype: dtype, non_blocking: _bool = False, copy: _bool = False, *, memory_format: memory_format | None = None) -> Tensor:
        """`self` in another dtype or on another device: `to(dtype)`, `to(device)`, `to(other)`. As `torch.Tensor.to`.

        Returns `self` itself if nothing changes and `copy` is False.
        """
    @overload
    def to(self, device: Device = None, dtype: dtype | None = None, non_blocking: _bool = False, copy: _bool = False, *, memory_format: memory_format | None = None) -> Tensor: ...
    @overload
    def to(self, tensor: Tensor, non_blocking: _bool = False, copy: _bool = False, *, memory_format: memory_format | None = None) -> Tensor: ...

    def to_dense(self, dtype: dtype | None = None, *, masked_grad: _bool | None = None) -> Tensor:
        """The strided tensor of the same values; gradients flow to the elements that are stored. As in PyTorch."""

    def to_sparse(self, sparse_dim: _int | _layout | None = None, *, layout: _layout | None = None, blocksize: _int | Sequence[_int] | None = None, dense_dim: _int | None = None) -> Tensor:
        """A sparse tensor of the elements that are not zero, in `layout` (COO by default). As `torch.Tensor.to_sparse`.

        sparse_dim: the number of dims, from the first, that have indices; the rest are dense, stored whole. RuntimeError
        for a number out of range, and for a block size that does not divide the matrix.
        """

    def to_sparse_bsc(self, blocksize: _int | Sequence[_int], dense_dim: _int | None = None) -> Tensor:
        """`self` in CSC of dense blocks. As `torch.Tensor.to_sparse_bsc`. RuntimeError unless they fit."""

    def to_sparse_bsr(self, blocksize: _int | Sequence[_int], dense_dim: _int | None = None) -> Tensor:
        """`self` in CSR of dense blocks. As `torch.Tensor.to_sparse_bsr`. RuntimeError unless they fit."""

    def to_sparse_coo(self) -> Tensor:
        """`self` in COO. As `torch.Tensor.to_sparse_coo`."""

    def to_sparse_csc(self, dense_dim: _int | None = None) -> Tensor:
        """`self`, a matrix or a batch of them, in CSC: column by column. As `torch.Tensor.to_sparse_csc`."""

    def to_sparse_csr(self, dense_dim: _int | None = None) -> Tensor:
        """`self`, a matrix or a batch of them, in CSR: row by row. As `torch.Tensor.to_sparse_csr`."""

    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> return_types.topk:
        """(values, indices) of the `k` largest (or smallest) elements along `dim`. As `torch.topk`.

        RuntimeError if there are fewer than `k`.
        """

    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal. As `torch.trace`. RuntimeError for anything but a matrix."""

    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """With `dim0` and `dim1` exchanged. As `torch.transpose`."""

    def transpose_(self, dim0: _int, dim1: _int) -> Tensor:
        """In-place form of `transpose`: `self` shows the same memory in that shape."""

    def triangular_solve(self, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> return_types.triangular_solve:
        """(solution, cloned_coefficient) of AX = b, A triangular. As `torch.triangular_solve`."""

    def trigamma(self) -> Tensor:
        """The second derivative of the logarithm of the gamma function."""

    def trigamma_(self) -> Tensor:
        """In-place form of `trigamma`."""

    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of the last two dims, zeros above `diagonal`. As `torch.tril`."""

    def tril_(self, diagonal: _int = 0) -> Tensor:
        """In-place form of `tril`."""

    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of the last two dims, zeros below `diagonal`. As `torch.triu`."""

    def triu_(self, diagonal: _int = 0) -> Tensor:
        """In-place form of `triu`."""

    def true_divide(self, other: Tensor | Number | complex, *, rounding_mode: str | None = None) -> Tensor:
        """input / other; rounded towards zero ("trunc") or down ("floor") on request. As `torch.div`."""

    def true_divide_(self, other: Tensor | Number | complex, *, rounding_mode: str | None = None) -> Tensor:
        """In-place form of `true_divide`."""

    def trunc(self) -> Tensor:
        """Each number as a whole one, rounded towards 0."""

    def trunc_(self) -> Tensor:
        """In-place form of `trunc`."""

    @overload
    def type(self, dtype: None = None, non_blocking: _bool = False) -> str:
        """The name of the tensor's type, "torch.FloatTensor"; with `dtype`, the tensor in it. As `torch.Tensor.type`."""
    @overload
    def type(self, dtype: dtype | str | type[Tensor], non_blocking: _bool = False) -> Tensor: ...

    def type_as(self, other: Tensor) -> Tensor:
        """`self` in the dtype of `other`. As `torch.Tensor.type_as`."""

    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """The slices along `dim`, without it. As `torch.unbind`."""

    def unflatten(self, dim: _int, sizes: Sequence[_int]) -> Tensor:
        """`dim` split into `sizes`, of which one may be -1. As `torch.unflatten`."""

    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """All slices of `size` along `dimension`, `step` apart, as a view with the slices in a new last dim.

        As `torch.Tensor.unfold`. RuntimeError if `size` is larger than the dim or `step` is not positive.
        """

    def uniform_(self, from_: _float = 0.0, to: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with uniform numbers in [from_, to)."""

    @overload
    def unique(self, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
        """The different elements in order, or slices along `dim`; where each element of `input` is among them, and how many
        there are of each, if asked for. As `torch.unique`. A graph is for one number of them.
        """
    @overload
    def unique(self, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique(self, sorted: _bool = True, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique(self, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...

    @overload
    def unique_consecutive(self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
        """`input` without elements (or slices along `dim`) that equal the one before. As `torch.unique_consecutive`."""
    @overload
    def unique_consecutive(self, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(self, return_inverse: Literal[False] = False, *, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(self, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...

    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """`chunk`; each part may be written in place. As `torch.unsafe_chunk`."""

    def unsafe_split(self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """`split`; each part may be written in place. As `torch.unsafe_split`."""

    def unsafe_split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """`split_with_sizes`; each part may be written in place. As `torch.unsafe_split_with_sizes`."""

    def unsqueeze(self, dim: _int) -> Tensor:
        """With a dim of size 1 inserted at `dim`. As `torch.unsqueeze`."""

    def unsqueeze_(self, dim: _int) -> Tensor:
        """In-place form of `unsqueeze`: `self` shows the same memory in that shape."""

    def untyped_storage(self) -> UntypedStorage:
        """The memory behind the tensor. As `torch.Tensor.untyped_storage`."""

    def values(self) -> Tensor:
        """The values that are stored: a view, through which gradients flow. As `torch.Tensor.values`.

        RuntimeError for a tensor that is not sparse, and for a COO tensor that is not coalesced.
        """

    @overload
    def var(self, dim: _int | Sequence[_int] | None, unbiased: _bool, keepdim: _bool = False) -> Tensor:
        """The variance over `dim`, its divisor n - correction (1). As `torch.var`. RuntimeError for integers."""
    @overload
    def var(self, dim: _int | Sequence[_int] | None = None, *, correction: Number | None = None, unbiased: _bool | None = None, keepdim: _bool = False) -> Tensor: ...
    @overload
    def var(self, unbiased: _bool) -> Tensor: ...

    def vdot(self, other: Tensor) -> Tensor:
        """The inner product of two vectors, the first one conjugated. As `torch.vdot`."""

    @overload
    def view(self, *shape: _int) -> Tensor:
        """As `reshape`, but always shares memory; of a dtype, the bytes as it. As `torch.Tensor.view`.

        RuntimeError where it cannot.
        """
    @overload
    def view(self, size: Sequence[_int]) -> Tensor: ...
    @overload
    def view(self, dtype: dtype) -> Tensor: ...

    def view_as(self, other: Tensor) -> Tensor:
        """`self` viewed in the shape of `other`. As `torch.Tensor.view_as`."""

    def vsplit(self, indices_or_sections: _int | Sequence[_int], /) -> tuple[Tensor, ...]:
        """`tensor_split` along dim 0, in equal parts. As `torch.vsplit`."""

    def where(self, condition: Tensor, other: Tensor | Number | complex) -> Tensor:
        """`self` where `condition` is true, else `other`. As `torch.Tensor.where`."""

    def where_(self, input: Tensor, other: Tensor) -> Tensor:
        """In-place form of `where`."""

    def xlogy(self, other: Tensor | Number | complex) -> Tensor:
        """input log(other); 0 where input is 0."""

    def xlogy_(self, other: Tensor | Number | complex) -> Tensor:
        """In-place form of `xlogy`."""

    def xpu(self, device: Device = None, non_blocking: _bool = False, memory_format: memory_format | None = None) -> Tensor:
        """`self` on an XPU. As `torch.Tensor.xpu`. AssertionError where there is none."""

    def zero_(self) -> Tensor:
        """Set every element to 0. As `torch.Tensor.zero_`."""
