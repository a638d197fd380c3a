"""Results and gradients of a sample call, told in a line: dtypes, shapes, and a few numbers each.

A tensor is told by its dtype, its shape, the numbers of its nans and infinities, and the inner product of the rest with
fixed weights. Two digests agree if the inner products do within the rounding of the dtype.
"""

from __future__ import annotations

import ast
import builtins
import functools
from typing import Any, NamedTuple

import numpy as np

from tests.samples.operands import SHORT, Operand, make

# of the sum of magnitudes in the inner product, for results and for gradients
BOUND = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5}
EXACT = 1e-7
_SHORT_OF = {long: short for short, long in SHORT.items()}


class Digest(NamedTuple):
    """A tensor: `text` must agree as it is, `product` within rounding of `scale`."""

    text: str
    product: float
    scale: float = 0.0

    def __str__(self) -> str:
        return f"{self.text} {self.product:.10g}"


def array(tensor: Any) -> np.ndarray:
    """The values of a tensor of PyTorch or eager; bfloat16 as float32."""
    plain = tensor.detach().clone()  # which makes values of PyTorch's tensors of zeros
    if hasattr(plain, "resolve_conj"):
        plain = plain.resolve_conj().resolve_neg()
    if dtype_of(plain) == "bfloat16":
        plain = plain.float()
    elif dtype_of(plain) == "complex32":
        plain = plain.cfloat()
    return np.asarray(plain.numpy())


def dtype_of(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def weights(size: int, seed: int = 0) -> np.ndarray:
    """Fixed numbers between 0.5 and 1.5."""
    return 0.5 + np.random.default_rng(seed).random(size)


def digest(tensor: Any) -> Digest:
    values, name = array(tensor), dtype_of(tensor)
    flat = values.reshape(-1)
    parts = np.concatenate([flat.real, flat.imag]) if values.dtype.kind == "c" else flat
    parts = parts.astype(np.float64)
    marks = "".join(
        f" {count}{mark}"
        for mark, count in (
            ("nan", int(np.isnan(parts).sum())),
            ("inf", int(np.isposinf(parts).sum())),
            ("-inf", int(np.isneginf(parts).sum())),
        )
        if count
    )
    terms = np.where(np.isfinite(parts), parts, 0) * weights(parts.size)
    shape = ",".join(map(str, values.shape))
    return Digest(f"{_SHORT_OF.get(name, name)}[{shape}]{marks}", float(terms.sum()), float(np.abs(terms).sum()))


def tensors_in(result: Any) -> list[Any]:
    """The tensors in a result, in order. What else it holds counts as its text."""
    if hasattr(result, "dtype") and hasattr(result, "detach"):
        return [result]
    return [t for item in result for t in tensors_in(item)] if isinstance(result, (list, tuple)) else []


def cotangent(torch: Any, result: Any, seed: int) -> Any:
    values = weights(result.numel(), seed).reshape(tuple(result.shape))
    made = torch.tensor(values * (1 + 0.5j) if "complex" in dtype_of(result) else values)
    return made.to(result.dtype)


def run(torch: Any, call: str, operands: tuple[Operand, ...]) -> list[str | Digest]:
    """What a call gives: the digests of its results, then of the gradients; or the type of its error."""
    tensors = {o.name: make(torch, o) for o in operands}
    torch.manual_seed(0)
    try:
        result = expression(call)(torch, **tensors)
    except Exception as error:
        return [f"! {kind_of(error)}"]
    return tell(torch, result, tensors)


def tell(torch: Any, result: Any, tensors: dict[str, Any]) -> list[str | Digest]:
    """The digests of a call's results, and of the gradients with respect to its operands `tensors`."""
    found, outs, leaves = describe(result, tensors)
    if not outs or not leaves:
        return found
    try:
        grads = torch.autograd.grad(outs, leaves, seeds(torch, outs), allow_unused=True)
    except Exception as error:
        return [*found, f"grad ! {kind_of(error)}"]
    return [*found, *map(digest_of_gradient, grads)]


def describe(result: Any, tensors: dict[str, Any]) -> tuple[list[str | Digest], list[Any], list[Any]]:
    """The digests of a result, its tensors that require grad, and the operands that do."""
    told = tensors_in(result)
    found: list[str | Digest] = [digest(t) for t in told] if told else [repr(result)]
    return found, [t for t in told if t.requires_grad], [t for t in tensors.values() if t.requires_grad]


def seeds(torch: Any, outs: list[Any]) -> list[Any]:
    """Fixed cotangents of the results of a call."""
    return [cotangent(torch, t, i + 1) for i, t in enumerate(outs)]


def digest_of_gradient(gradient: Any) -> str | Digest:
    return "None" if gradient is None else digest(gradient)


def kind_of(error: Exception) -> str:
    """The type of PyTorch's that an error is (LinAlgError is a RuntimeError of its own)."""
    return type(error).__name__.lstrip("_")


@functools.cache
def expression(call: str) -> Any:
    """`call` as a function of the module `t` and the operands by name.

    It has code of its own: of a function that evaluates a text, a trace looks at all that this module reaches.
    """
    scope: dict[str, Any] = {"inf": float("inf"), "nan": float("nan")}
    names = {node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    operands = [f"{name}=None" for name in sorted(names - {"t", "F", *scope, *vars(builtins)})]
    head = f"def function(t, {', '.join(['*', *operands, ''] if operands else [])}**others):"
    exec(f"{head}\n    F = t.nn.functional\n    return {call}", scope)
    return scope["function"]


def agree(recorded: str, got: str | Digest) -> bool:
    """Whether a digest is the recorded one, within rounding."""
    if isinstance(got, str):
        return recorded == got
    text, _, product = recorded.rpartition(" ")
    if text != got.text:
        return False
    name = SHORT.get(text.split("[")[0], "")
    bound = BOUND.get(name, EXACT)
    if np.isnan(got.product):  # the sum of numbers near the largest
        return product == "nan"
    return abs(float(product) - got.product) <= bound * (got.scale + 1)  # 1: what cancels was of that size
