"""A small language of linear algebra: shapes, values modulo a prime, and the program that a user would write.

It shares nothing with graphc: what an expression is worth is asked of NumPy, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import eager as torch

PRIME = 8388593  # below 2^23: products of matrices are exact in float64, where BLAS multiplies
LARGEST = 128  # terms of a sum of such products below 2^53

Shape = tuple[int, ...]


class Operation(NamedTuple):
    """What may stand in an expression.

    value  of arrays modulo PRIME, and parameters; NumPy's errors say what does not fit
    text   how it is written, with {0}, {1} for the operands, and {} for parameters by name
    """

    value: Callable[..., np.ndarray]
    text: Callable[..., str]


class Expression(NamedTuple):
    """An operation on others, or an input, with its name as its parameter."""

    operation: str
    arguments: tuple[Expression, ...]
    parameters: tuple[Any, ...]
    shape: Shape

    def __repr__(self) -> str:
        return source(self)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.shape[-1] > LARGEST:
        raise ValueError("too long a sum to be exact")
    return a @ b


def _inverse(a: np.ndarray) -> np.ndarray:
    """By Gauss and Jordan. Raises ValueError for a singular matrix."""
    n = len(a)
    if a.shape != (n, n):
        raise ValueError("not square")
    work = np.concatenate([a, np.eye(n)], 1)
    for k in range(n):
        pivots = np.flatnonzero(work[k:, k])
        if not len(pivots):
            raise ValueError("singular")
        work[[k, k + pivots[0]]] = work[[k + pivots[0], k]]
        work[k] = work[k] * pow(int(work[k, k]), -1, PRIME) % PRIME
        factors = work[:, k].copy()
        factors[k] = 0
        work = (work - np.outer(factors, work[k])) % PRIME
    return work[:, n:]


def _same(a: np.ndarray, b: np.ndarray) -> None:
    if a.shape != b.shape:
        raise ValueError("shapes differ")


def _sum(a: np.ndarray, axis: int | None) -> np.ndarray:
    if axis is not None and a.ndim < 2:
        raise ValueError("a vector has one sum")
    return np.asarray(a.sum(axis))


def _cut(a: np.ndarray, axis: int, low: int, high: int) -> np.ndarray:
    if not 0 <= low < high <= a.shape[axis]:
        raise ValueError("outside")
    return a.take(range(low, high), axis)


def _added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    _same(a, b)
    return a + b


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    _same(a, b)
    return a * b


def _rows(d: np.ndarray, a: np.ndarray) -> np.ndarray:
    if a.ndim != 2 or d.shape != a.shape[:1]:
        raise ValueError("a number for each row")
    return d[:, None] * a


def _columns(a: np.ndarray, d: np.ndarray) -> np.ndarray:
    if a.ndim != 2 or d.shape != a.shape[1:]:
        raise ValueError("a number for each column")
    return a * d


def _scalar_times(s: np.ndarray, a: np.ndarray) -> np.ndarray:
    if s.shape != ():
        raise ValueError("a number")
    return s * a


def _matrix(a: np.ndarray) -> np.ndarray:
    if a.ndim != 2:
        raise ValueError("a matrix")
    return a


def _vector(a: np.ndarray) -> np.ndarray:
    if a.ndim != 1:
        raise ValueError("a vector")
    return a


def _kronecker(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.ndim != b.ndim or a.ndim not in (1, 2):
        raise ValueError("two matrices, or two vectors")
    return np.kron(a, b)


def _index(axis: int, what: str) -> str:
    return f"[{':, ' * axis}{what}]"


OPERATIONS = {
    "mm": Operation(_product, lambda a, b: f"{a} @ {b}"),
    "t": Operation(lambda a: a.swapaxes(-1, -2), lambda a: f"{a}.mT"),
    "add": Operation(_added, lambda a, b: f"{a} + {b}"),
    "scale": Operation(lambda a, c: a * (c % PRIME), lambda a, c: f"{c} * {a}"),
    "had": Operation(_times, lambda a, b: f"{a} * {b}"),
    "times": Operation(_scalar_times, lambda s, a: f"{s} * {a}"),
    "rows": Operation(_rows, lambda d, a: f"{d}[:, None] * {a}"),
    "cols": Operation(_columns, lambda a, d: f"{a} * {d}"),
    "outer": Operation(lambda u, v: np.outer(_vector(u), _vector(v)), lambda u, v: f"torch.outer({u}, {v})"),
    "sum": Operation(_sum, lambda a, axis: f"{a}.sum({'' if axis is None else axis})"),
    "cut": Operation(_cut, lambda a, axis, low, high: a + _index(axis, f"{low}:{high}")),
    "pick": Operation(lambda a, axis, k: np.asarray(a.take(k, axis)), lambda a, axis, k: a + _index(axis, str(k))),
    "diagm": Operation(lambda d: np.diag(_vector(d)), lambda d: f"torch.diag({d})"),
    "diagv": Operation(lambda a: np.diag(_matrix(a)), lambda a: f"torch.diag({a})"),
    "trace": Operation(lambda a: np.asarray(np.trace(_matrix(a))), lambda a: f"torch.trace({a})"),
    "cat": Operation(
        lambda a, b, axis: np.concatenate([a, b], axis), lambda a, b, axis: f"torch.cat([{a}, {b}], {axis})"
    ),
    "kron": Operation(_kronecker, lambda a, b: f"torch.kron({a}, {b})"),
    "shaped": Operation(lambda a, shape: a.reshape(shape), lambda a, shape: f"{a}.reshape{shape}"),
    "inv": Operation(_inverse, lambda a: f"torch.linalg.inv({a})"),
    "solve": Operation(lambda a, b: _product(_inverse(a), b), lambda a, b: f"torch.linalg.solve({a}, {b})"),
    "f": Operation(lambda a: a * a % PRIME * a + 7, lambda a: f"torch.tanh({a})"),  # any function of an element
}  # fmt: skip
INFIX = ("add", "mm", "scale", "had", "times", "rows", "cols")
BEFORE = ("t", "sum", "cut", "pick", "shaped", "rows")  # what is written behind its operand


def value(operation: str, arguments: Sequence[np.ndarray], parameters: Sequence[Any]) -> np.ndarray:
    """Of one operation, modulo PRIME. Raises ValueError or IndexError for what does not fit."""
    return np.mod(OPERATIONS[operation].value(*arguments, *parameters), PRIME)


def make(operation: str, *arguments: Expression, parameters: tuple[Any, ...] = ()) -> Expression:
    """An operation on expressions. Raises ValueError or IndexError for what does not fit."""
    blank = [np.zeros(a.shape) for a in arguments]
    if operation in ("inv", "solve"):
        blank[0] = np.eye(len(blank[0]))
    return Expression(operation, arguments, parameters, value(operation, blank, parameters).shape)


def leaf(name: str, shape: Shape) -> Expression:
    """An input."""
    return Expression("leaf", (), (name,), shape)


def parts(expression: Expression) -> Iterator[Expression]:
    """What an expression is made of, operands first, each once; the same object twice is one."""
    seen: set[int] = set()
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        part, ready = stack.pop()
        if ready:
            yield part
        elif id(part) not in seen:
            seen.add(id(part))
            stack.append((part, True))
            stack.extend((a, False) for a in reversed(part.arguments))


def leaves(expression: Expression) -> dict[str, Shape]:
    """The inputs, by name."""
    found = {part.parameters[0]: part.shape for part in parts(expression) if part.operation == "leaf"}
    return dict(sorted(found.items()))


def source(expression: Expression) -> str:
    """The function that a user would write; what is used several times has a name."""
    own = list(parts(expression))
    uses: dict[int, int] = {}
    for part in own:
        for a in part.arguments:
            uses[id(a)] = uses.get(id(a), 0) + 1
    lines: list[str] = []
    written: dict[int, str] = {}
    for part in own:
        if part.operation == "leaf":
            written[id(part)] = part.parameters[0]
            continue
        inside: list[str] = []
        for k, a in enumerate(part.arguments):
            text = written[id(a)]
            is_open = a.operation in INFIX and not text.isidentifier()
            inside.append(f"({text})" if is_open and _in_brackets(part.operation, k, a.operation) else text)
        text = OPERATIONS[part.operation].text(*inside, *part.parameters)
        if uses.get(id(part), 0) > 1:
            name = f"s{len(lines)}"
            lines.append(f"{name} = {text}")
            text = name
        written[id(part)] = text
    return "; ".join([*lines, f"return {written[id(expression)]}"])


def _in_brackets(outer: str, k: int, inner: str) -> bool:
    """Whether operand k, which is written with a sign, must be in brackets."""
    if outer == "add":
        return inner == "add" and k == 1
    return outer in BEFORE or (outer in INFIX and not (outer == inner == "mm" and k == 0))


def program(expression: Expression) -> Callable[..., Any]:
    """The function of the inputs, in the order of their names."""
    space: dict[str, Any] = {"torch": torch}
    exec(f"def f({', '.join(leaves(expression))}): {source(expression)}", space)
    return space["f"]


def arrays(expression: Expression, seed: int) -> list[np.ndarray]:
    """Inputs of moderate size in float64: those whose names begin with W are well conditioned."""
    rng = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    for name, shape in leaves(expression).items():
        x = rng.standard_normal(shape)
        if len(shape) > 1:
            x /= np.sqrt(shape[-1])
        found.append(np.eye(shape[0]) + 0.2 * x if name.startswith("W") else x)
    return found
