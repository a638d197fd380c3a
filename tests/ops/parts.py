"""One result of an op with several, as an op of its own: what is derived for ops with one is derived for these."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from graphc.ops import OPS, Op
from graphc.ops.aval import aval_of
from graphc.ops.dtypes import is_inexact
from graphc.ops.gradient import names_of_results
from graphc.ops.interpret import run_kernel, with_defaults
from graphc.ops.references import reference_of


def every_part() -> list[Op]:
    """Each op that computes on arrays, those with several results by result."""
    return [part for op in OPS.values() if not op.structured for part in parts(op)]


def parts(op: Op) -> tuple[Op, ...]:
    """The results of `op`, each as an op; an op with one result itself."""
    return tuple(part(op, k) for k in range(len(op.results))) or (op,)


@functools.cache
def part(op: Op, index: int) -> Op:
    """Result number `index` of `op` as an op, named `<op>_<result>`, whose gradient rules are the whole's."""

    def reference(*arrays: np.ndarray, **params: Any) -> np.ndarray:
        found = reference_of(op)(*arrays, **params)
        return (found if op.nearest is None else op.nearest(found, run_kernel(op, arrays, params)))[index]

    if getattr(op.ref, "everywhere", False):
        reference.everywhere = True  # type: ignore[attr-defined]
    impl: Any = op.impl
    vjp = {arg: _rule(op, arg, index) for arg in op.vjp} if _is_inexact(op, index) else {}
    return Op(
        f"{op.name}_{op.results[index]}", ("*" if op.variadic else "") + " ".join(op.args), params=op.params,
        impl=lambda xp, *arrays, **params: impl(xp, *arrays, **params)[index],
        numpy=lambda *arrays, **params: op.kernel(*arrays, **params)[index],
        rule=op.rule._replace(infer=lambda _, avals, params: op.rule.infer(op, avals, params)[index]),
        vjp=vjp, ref=None if op.ref is None else reference,
        traits=op.traits, domain=op.domain, samples=op.samples, rounding=op.rounding, check=op.check,
        cpu_name=op.cpu_name, claims=None if op.claims is None else lambda params, _: op.claims(params, index),
    )  # fmt: skip


def _is_inexact(op: Op, index: int) -> bool:
    arrays = op.samples[0].arrays(np.random.default_rng(0), op.domain)
    params = with_defaults(op, op.samples[0].params)
    return is_inexact(op.rule.infer(op, [aval_of(a) for a in arrays], params)[index].dtype)


def _rule(op: Op, arg: str, index: int) -> Any:
    """The gradient rule of `arg` where a cotangent has come from one result only."""
    rule = op.vjp[arg]
    names = ("g", *[n for n in rule.names if n not in names_of_results(op, "g")])
    kept = [n for n in names if n not in names_of_results(op, "r")]
    asks = list(dict.fromkeys([*kept, *op.args, *op.params]))

    def shared(F: Any, values: dict[str, Any]) -> Any:
        results = getattr(F, op.name)(*[values[a] for a in op.args], **{p: values[p] for p in op.params})
        values |= dict(zip(names_of_results(op, "r"), results, strict=True))
        values |= dict.fromkeys(names_of_results(op, "g")) | {names_of_results(op, "g")[index]: values["g"]}
        return rule.fn(F, *[values[n] for n in rule.names])

    source = f"lambda F, {', '.join(asks)}: shared(F, dict({', '.join(f'{n}={n}' for n in asks)}))"
    return eval(source, {"shared": shared})
