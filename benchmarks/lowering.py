"""What each op costs as it is lowered, beside the plain spelling of the same function in jax.numpy.

Run: python benchmarks/lowering.py [--size N] [--rounds N] [names of ops]

Every op of the registry that is pointwise, or takes floats and says along which axes, on arrays of `size` elements; the
spelling is its `impl` where that is a name of jax.numpy, or a row of `SPELLINGS`. Ratios of medians within rounds,
results awaited; one core. The reason says what the semantics of PyTorch cost, where they cost something.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from timing import interleaved, one_core, row

one_core()

import jax  # noqa: E402  (after one_core)
import jax.numpy as jnp  # noqa: E402
import jax.scipy.special as special  # noqa: E402
import numpy as np  # noqa: E402

import graphc  # noqa: E402
from graphc.ir import Builder, Ref  # noqa: E402
from graphc.ops import OPS, Op  # noqa: E402
from graphc.ops.rules import integral  # noqa: E402
from graphc.ops.samples import Bools, Floats, Ints, Sample  # noqa: E402

GOAL = 1.1
AXES = {"axis", "keepdims", "reverse", "descending", "correction"}  # parameters that say nothing of sizes
Spelling = Callable[..., Any]


def _axis(axis: Any) -> Any:
    return axis if axis != () else None


def _placed(reducer: Spelling, place: Spelling) -> Spelling:
    return lambda x, axis, keepdims: (reducer(x, axis, keepdims=keepdims), place(x, axis, keepdims=keepdims))


def _sorted(x: Any, axis: int, descending: bool) -> Any:
    places = jnp.argsort(x, axis, descending=descending)
    return jnp.take_along_axis(x, places, axis), places


# functions of the operands and the parameters, of ops whose `impl` is none of jax.numpy's
SPELLINGS: dict[str, Spelling] = {
    "sum": lambda x, axis, keepdims: jnp.sum(x, axis, keepdims=keepdims),
    "var": lambda x, axis, keepdims, correction: jnp.var(x, axis, ddof=correction, keepdims=keepdims),
    "prod": lambda x, axis, keepdims: jnp.prod(x, axis, keepdims=keepdims),
    "argmax": lambda x, axis, keepdims: jnp.argmax(x, axis, keepdims=keepdims),
    "argmin": lambda x, axis, keepdims: jnp.argmin(x, axis, keepdims=keepdims),
    "max_dim": _placed(jnp.max, jnp.argmax),
    "min_dim": _placed(jnp.min, jnp.argmin),
    "cumsum": lambda x, axis, reverse: jnp.cumsum(x[:, ::-1], axis)[:, ::-1] if reverse else jnp.cumsum(x, axis),
    "cumprod": lambda x, axis: jnp.cumprod(x, axis),
    "logcumsumexp": lambda x, axis: jax.lax.cumlogsumexp(x, axis),
    "softmax": lambda x, axis: jax.nn.softmax(x, axis),
    "log_softmax": lambda x, axis: jax.nn.log_softmax(x, axis),
    "logsumexp": lambda x, axis, keepdims: jax.nn.logsumexp(x, axis, keepdims=keepdims),
    "dot_along": lambda x, y, axis: jnp.sum(x * y, axis, keepdims=True),
    "sort": _sorted,
    "argsort": lambda x, axis, descending: jnp.argsort(x, axis, descending=descending),
    "sign": jnp.sign,
    "sgn": jnp.sign,
    "remainder": jnp.remainder,
    "integer_pow": lambda x, y: jnp.power(x, y),
    "rsqrt": jax.lax.rsqrt,
    "reciprocal": jnp.reciprocal,
    "softplus": lambda x: jax.nn.softplus(x),
    "relu": jax.nn.relu,
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "logaddexp": jnp.logaddexp,
    "signbit": jnp.signbit,
    "frexp_mantissa": lambda x: jnp.frexp(x)[0],
    "frexp_exponent": lambda x: jnp.frexp(x)[1],
    "trigamma": lambda x: special.polygamma(1, x),
    "tril": lambda x, diagonal: jnp.tril(x, diagonal),
    "triu": lambda x, diagonal: jnp.triu(x, diagonal),
    "stop_gradient": lambda x: x + 0,
    "clone": lambda x: x + 0,
    "pow_scalar": lambda x, exponent: x**exponent,
    "bitwise_left_shift": jnp.left_shift,
    "bitwise_right_shift": jnp.right_shift,
}
REASONS = {  # what the functions of jax.scipy.special leave out
    "special_zeta": "negative q, by three sums",
    "special_erfcx": "the range where erfc is denormal",
    "special_log_ndtr": "a tail as exact as erfcx",
    "integer_pow": "negative exponents",
}
EXPONENTS = (2, 3, 4, 7, -1, -2, 0.5, -0.5, 1.5)


class Case(NamedTuple):
    """One op on large operands: how they are drawn, and the same function in jax.numpy."""

    op: Op
    sample: Sample
    spelling: Spelling

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v}" for k, v in self.sample.params.items())
        return f"{self.op.name}({shown})"


def cases(size: int) -> Iterator[Case]:
    """Those that the registry gives, and powers to numbers."""
    for op in OPS.values():
        spelling = _spelling(op)
        if spelling is None or op.name == "pow_scalar":
            continue
        if op.pointwise:
            yield Case(op, Sample(*(_operand(op, k, (size,)) for k in range(len(op.args)))), spelling)
        elif op.samples and set(op.samples[0].params) <= AXES | {"diagonal"}:
            for axis in (0, 1):
                sample = _enlarged(op, axis, size)
                if sample is not None:
                    yield Case(op, sample, spelling)
    for exponent in EXPONENTS:
        yield Case(OPS["pow_scalar"], Sample((size,), exponent=exponent), SPELLINGS["pow_scalar"])


def _spelling(op: Op) -> Spelling | None:
    if op.name in SPELLINGS:
        return SPELLINGS[op.name]
    name = op.impl if isinstance(op.impl, str) else ""
    place, name = (special, name.removeprefix("special.")) if name.startswith("special.") else (jnp, name)
    return getattr(place, name, None)


def _operand(op: Op, index: int, shape: tuple[int, ...]) -> Any:
    if op.rule.infer is integral.infer:
        low, high = op.domain or (1, 8)
        return Ints(shape, high, low)
    return Bools(shape) if index < op.rule.first else Floats(shape)


def _enlarged(op: Op, axis: int, size: int) -> Sample | None:
    """A call on matrices, along `axis`."""
    given = op.samples[0]
    if not all(isinstance(spec, Floats) for spec in given.inputs):
        return None
    side = int(size**0.5)
    params = dict(given.params)
    if "axis" not in params and axis:
        return None
    if "axis" in params:
        params["axis"] = (axis,) if isinstance(params["axis"], tuple) else axis
    return Sample(*(Floats((side, side)) for _ in given.inputs), **params)


def timed(case: Case, rounds: int, rng: np.random.Generator) -> tuple[float, float] | None:
    """The ratio of the lowered op to the spelling, and the seconds that this takes; None if it takes no such arrays."""
    arrays = case.sample.arrays(rng, case.op.domain, np.float32)
    builder = Builder()
    try:
        inputs = [builder.input(f"x{k}", graphc.ops.aval.aval_of(a)) for k, a in enumerate(arrays)]
        found = getattr(builder.language, case.op.name)(*inputs, **case.sample.params)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    refs = tuple(Ref(x.id) for x in found) if isinstance(found, tuple) else Ref(found.id)
    program = graphc.lower(graphc.optimize(builder.graph("program", refs)))
    plain = jax.jit(lambda *xs: case.spelling(*xs, **case.sample.params))
    wide = any(a.dtype == np.int64 for a in arrays)
    with jax.enable_x64(wide):
        given = [jnp.asarray(a) for a in arrays]

    def by_spelling() -> Any:
        with jax.enable_x64(wide):
            return jax.block_until_ready(plain(*given))

    try:
        by_spelling()
    except (TypeError, ValueError):
        return None
    program(*given)  # compiles
    calls = {"plain": by_spelling, "graphc": lambda: jax.block_until_ready(program.dispatch(*given))}
    timing = interleaved(calls, rounds, 0.005)
    return timing.ratio["graphc"], timing.seconds["plain"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("only", nargs="*", help="names of ops")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    found: list[tuple[float, float, Case]] = []
    skipped: list[str] = []
    for case in cases(options.size):
        if not options.only or case.op.name in options.only:
            measured = timed(case, options.rounds, rng)
            if measured is None:
                skipped.append(case.op.name)
            else:
                found.append((*measured, case))
    for ratio, seconds, case in sorted(found, key=lambda entry: -entry[0]):
        if ratio > GOAL or options.only:
            verdict = REASONS.get(case.op.name, "MISSED") if ratio > GOAL else ""
            row(str(case), f"{ratio:8.2f}  ({seconds * 1e6:7.0f} us)", verdict)
    row(f"at most {GOAL}", f"{sum(ratio <= GOAL for ratio, *_ in found)} of {len(found)}", "all")
    row("not measured: no such arrays", ", ".join(sorted(set(skipped))) or "none", "")


if __name__ == "__main__":
    main()
