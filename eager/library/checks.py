"""`torch.library.opcheck`: whether an operation does what has been said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager.core.pytree import flatten
from eager.core.tensor import Tensor
from eager.utils._pytree import tree_map

SUCCESS = "SUCCESS"
FAILED = "opcheck(op, ...): {} failed with {} (scroll up for stack trace)"
MUTATED = "Argument {} is not defined as mutable but was mutated"
DIFFERENT = (
    "When comparing the output of {} on FakeTensor and concrete Tensors, found mismatched tensor metadata: "
    "{} {} and {} are not equal!"
)
NO_GRADIENT = "the results of {} require no gradient, though arguments do: register_autograd gives a formula"


class OpCheckError(Exception):
    """An operation that fails a test of `opcheck`."""


class MetadataMismatchError(RuntimeError):
    """Shapes or dtypes of fake results that are not those of real ones."""


def opcheck(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
    test_utils: str | Sequence[str] | None = None, raise_exception: bool = True, atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Test an operation of `torch.library` on arguments: {test: "SUCCESS", or the error}. As `torch.library.opcheck`.

    test_schema                 it writes into none of its arguments
    test_autograd_registration  results have gradients if arguments require them
    test_faketensor             its fake function gives the shapes and dtypes of the results
    test_aot_dispatch_dynamic   `torch.compile` of it gives the same, up to `atol` and `rtol`

    OpCheckError for the first that fails, unless `raise_exception` is False; ValueError for other tests.

    >>> import eager as torch
    >>> @torch.library.custom_op("shop::half", mutates_args=())
    ... def half(x: torch.Tensor) -> torch.Tensor:
    ...     return x / 2
    >>> torch.library.opcheck(half, (torch.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils or DEFAULT)
    if not set(wanted) <= set(TESTS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={wanted}), expected test_utils to be subset of {tuple(TESTS)} but it was not"
        )
    tolerance = {"atol": atol, "rtol": rtol}
    found: dict[str, Any] = {}
    for name in wanted:
        try:
            TESTS[name](op, args, kwargs or {}, tolerance)
            found[name] = SUCCESS
        except Exception as error:
            if raise_exception:
                raise OpCheckError(FAILED.format(name, error)) from error
            found[name] = error
    return found


def _copy(value: Any) -> Any:
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value


def _tensors(value: Any) -> list[Tensor]:
    return [x for x in flatten(value)[0] if isinstance(x, Tensor)]


def _schema(op: Any, args: Any, kwargs: Any, tolerance: Any) -> None:
    given = op._signature.bind(*args, **kwargs).arguments
    copies = {name: tree_map(_copy, value) for name, value in given.items()}
    before = {name: [x._version for x in _tensors(value)] for name, value in copies.items()}
    bound = op._signature.bind(*args, **kwargs)
    bound.arguments.update(copies)
    op(*bound.args, **bound.kwargs)
    for name, value in copies.items():
        if name not in op._mutates and [x._version for x in _tensors(value)] != before[name]:
            raise RuntimeError(MUTATED.format(name))


def _autograd(op: Any, args: Any, kwargs: Any, tolerance: Any) -> None:
    if not any(x.requires_grad for x in _tensors([args, kwargs])):
        return
    results = _tensors(op(*args, **kwargs))
    if any(x.is_floating_point() for x in results) and not any(x.requires_grad for x in results):
        raise RuntimeError(NO_GRADIENT.format(op._qualname))


def _fake(op: Any, args: Any, kwargs: Any, tolerance: Any) -> None:
    def meta(value: Any) -> Any:
        return value.detach().to("meta") if isinstance(value, Tensor) else value

    real = _tensors(op(*tree_map(_copy, args), **tree_map(_copy, kwargs)))
    fake = _tensors(op(*tree_map(meta, args), **tree_map(meta, kwargs)))
    name = f"{op._qualname.replace('::', '.')}.default"
    for x, y in zip(real, fake, strict=True):
        for what, a, b in (("Shapes", x.shape, y.shape), ("Dtypes", x.dtype, y.dtype)):
            if a != b:
                raise MetadataMismatchError(DIFFERENT.format(name, what, a, b))


def _compiled(op: Any, args: Any, kwargs: Any, tolerance: Any) -> None:
    from eager.compiling.compiled import compile
    from eager.testing import assert_close

    def call(args: Any, kwargs: Any) -> Any:
        return op(*args, **kwargs)

    expected, got = (f(tree_map(_copy, args), tree_map(_copy, kwargs)) for f in (call, compile(call, fullgraph=True)))
    assert_close(got, expected, **tolerance)


TESTS: dict[str, Callable[[Any, Any, Any, Any], None]] = {
    "test_schema": _schema, "test_autograd_registration": _autograd, "test_faketensor": _fake,
    "test_aot_dispatch_static": _compiled, "test_aot_dispatch_dynamic": _compiled,
}  # fmt: skip
DEFAULT = tuple(name for name in TESTS if name != "test_aot_dispatch_static")
