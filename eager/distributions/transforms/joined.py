"""Several transforms side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.transforms.transform import Transform
from eager.distributions.utils import lazy_property, sum_rightmost
from eager.functional.joining import cat, stack


def _assert(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


class _Joined(Transform):
    """Transforms of parts of a tensor along `dim`."""

    transforms: list[Any]
    dim: int

    def __init__(self, tseq: Sequence[Transform], cache_size: int = 0):
        _assert(all(isinstance(t, Transform) for t in tseq), "All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _parts(self, z: Tensor, name: str, what: str = "tensor") -> Sequence[Tensor]:
        """The parts of `z`, called `name` in messages. AssertionError if it has others."""
        count, counted = self._count()
        _assert(-z.dim() <= self.dim < z.dim(), f"dim {self.dim} out of range for {what} with {z.dim()} dimensions")
        size = z.size(self.dim)
        _assert(size == count, f"{name}.size({self.dim}) = {size} must equal {counted} {count}")
        return self._split(z)

    def _count(self) -> tuple[int, str]:
        raise NotImplementedError

    def _split(self, z: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x, "x"), strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y, "y"), strict=True)])

    def _jacobians(self, x: Tensor, y: Tensor) -> list[Tensor]:
        parts = zip(self.transforms, self._parts(x, "x", "x"), self._parts(y, "y", "y"), strict=True)
        return [t.log_abs_det_jacobian(before, after) for t, before, after in parts]


class CatTransform(_Joined):
    """Transforms of the pieces of the given lengths (1 each) along `dim`."""

    _arguments = ("transforms", "dim", "lengths")

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ):
        super().__init__(tseq, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        _assert(
            len(self.lengths) == len(self.transforms),
            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})",
        )
        self.dim = dim

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        return sum(self.lengths)

    def _count(self) -> tuple[int, str]:
        return self.length, "length"

    def _split(self, z: Tensor) -> Sequence[Tensor]:
        return z.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [
            sum_rightmost(term, self.event_dim - t.event_dim)
            for t, term in zip(self.transforms, self._jacobians(x, y), strict=True)
        ]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return cat(terms, dim=dim) if dim < 0 else sum(terms)  # type: ignore[return-value]

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Joined):
    """Transforms of the slices along `dim`."""

    _arguments = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, cache_size)
        self.dim = dim

    def _count(self) -> tuple[int, str]:
        return len(self.transforms), "len(transforms)"

    def _split(self, z: Tensor) -> Sequence[Tensor]:
        return z.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return stack(self._jacobians(x, y), dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
