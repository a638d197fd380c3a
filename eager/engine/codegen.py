"""The source of the fast path: straight-line NumPy for each op, written from its declaration.

For an op and a dtype this writes one forward function and its backward functions, in variants:

    ff   all operands have the result's shape: temporaries are reused through `out=`
    fs   the second operand is a Python scalar        sf   the first one is
    bb   shapes differ: gradients are summed back to each operand's shape

The forward function handles Tensors of its dtype in NumPy memory; anything else (scalars of another kind,
other dtypes, traced tensors, an error) it hands to `miss`, which interprets the same declaration without shortcuts.
`DT`, the dtype it compares with, is the gate: while a trace is active it is an object that equals no dtype.

`eager.source(op)` shows the text; `generated_ops` compiles it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import tape
from eager.engine.terms import Term, names, steps, trace_rule
from graphc.ops.dtypes import is_inexact
from graphc.ops.rules import pointwise_bool
from graphc.ops.spec import Op

SCALAR_OPERAND = {"fs": 1, "sf": 0}  # variant -> the operand that is a Python scalar
NUMBERS: dict[str, tuple[type, ...]] = {"f": (float, int), "i": (int,)}
"""kind of dtype -> the Python numbers beside which it stays"""


def is_ufunc(op: Op) -> bool:
    return isinstance(op.kernel, np.ufunc)


class Writer:
    """Collects source lines, and the objects they name."""

    def __init__(self, dtype: np.dtype, scope: dict[str, Any]):
        self.dtype = dtype
        self.scope = scope
        self.lines: list[str] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def bind(self, stem: str, value: Any) -> str:
        """A name for `value` in the generated module; the same value keeps its name."""
        name, suffix = stem, 0
        while name in self.scope and self.scope[name] is not value:
            suffix += 1
            name = f"{stem}_{suffix}"
        self.scope[name] = value
        return name

    def ufunc(self, op: Op) -> str:
        """The name of the NumPy ufunc behind `op`."""
        return self.bind(f"np_{op.kernel.__name__}", op.kernel)

    def constant(self, value: Any) -> str:
        array = np.array(value, self.dtype)
        array.flags.writeable = False
        stem = "c_" + repr(value).replace("-", "m").replace(".", "p").replace("+", "")
        known = self.scope.get(stem)
        if known is not None and known.tobytes() == array.tobytes():
            return stem
        return self.bind(stem, array)

    def expression(
        self, depth: int, term: Term, full: set[str], reuse: bool, into: str | None = None
    ) -> tuple[str, bool]:
        """Write statements that compute `term`. Returns its name, and whether it is a newly made array.

        `full` are the names that have the result's shape; with `reuse`, a temporary that is used up gives its memory
        to the next ufunc of that shape. The first and the last one write `into` that array.
        """
        order: list[tuple[str, Term, tuple[str, ...]]] = []
        numbered: dict[Any, str] = {}

        def visit(t: Term) -> str:
            if t.op is None:
                return t.name or self.constant(t.constant)
            uses = tuple(visit(x) for x in t.operands)
            key = (t.op, uses)
            if key not in numbered:
                numbered[key] = f"t{len(numbered)}"
                order.append((numbered[key], t, uses))
            return numbered[key]

        result = visit(term)
        last_use = {name: i for i, (_, _, uses) in enumerate(order) for name in uses}
        full, floats = set(full), set[str]()
        free: dict[str, str] = {}  # temporary -> variable that holds it
        spare = True  # `into` holds nothing yet
        for i, (name, t, uses) in enumerate(order):
            assert t.op is not None
            call = ", ".join(free.get(u, u) for u in uses)
            target = name
            if is_ufunc(t.op):
                boolean = t.op.rule.infer is pointwise_bool.infer
                out = "..."
                if not full.isdisjoint(uses):
                    full.add(name)
                    if not boolean:
                        done = [u for u in uses if u in floats and u in full and last_use[u] == i]
                        if reuse and done:
                            out = target = free.get(done[0], done[0])
                if not boolean:
                    floats.add(name)
                    if into and (name == result or (spare and out == "..." and name in full)):
                        out, target, spare = into, into, False
                ufunc = self.ufunc(t.op)
                self.line(depth, f"{target} = {ufunc}({call}, out=...)" if out == "..." else f"{ufunc}({call}, {out})")
            else:
                if not full.isdisjoint(uses):
                    full.add(name)
                self.line(depth, f"{target} = {self.bind('k_' + t.op.name, t.op.kernel)}({call})")
            free[name] = target
        return free.get(result, result), bool(order)


def _needs(op: Op, arg: str) -> list[str]:
    """The names that the gradient rule of `arg` needs to have saved."""
    return [n for n in op.vjp[arg].names if n != "g"]


def _saved_names(op: Op, variant: str) -> list[str]:
    """The names in a node's saved tuple, in order. A variant that sums gradients back also saves shapes."""
    names: list[str] = []
    for arg in live_arguments(op, variant):
        for n in _needs(op, arg):
            if n not in names:
                names.append(n)
        if variant == "bb" and f"{arg}_shape" not in names:
            names.append(f"{arg}_shape")
    return names


def live_arguments(op: Op, variant: str) -> list[str]:
    """The differentiable arguments that are Tensors in this variant."""
    return [a for i, a in enumerate(op.args) if a in op.vjp and i != SCALAR_OPERAND.get(variant)]


def _pays(w: Writer, term: Term) -> bool:
    """Whether blocks pay for a rule: it is several passes over real numbers, the last one a ufunc's."""
    return w.dtype.kind == "f" and term.op is not None and is_ufunc(term.op) and steps(term) > 1


def _is_product(term: Term) -> bool:
    """Whether it is one of names, or of one name and a term: a sum of it needs no products in memory."""
    return term.op is not None and term.op.kernel is np.multiply and any(t.op is None for t in term.operands)


def write_backward(w: Writer, op: Op, variant: str) -> tuple[str, list[str]]:
    """Write the backward function of one variant. Returns its name and the names of what it saves."""
    saved = _saved_names(op, variant)
    function = f"{op.name}_backward_{variant}"
    full = {"g", "r"} | {a for i, a in enumerate(op.args) if i != SCALAR_OPERAND.get(variant)}
    terms = {arg: trace_rule(op, arg) if op.pointwise else None for arg in live_arguments(op, variant)}
    passes: dict[str, str] = {}  # argument -> the call of its rule, by blocks
    for arg, term in terms.items():
        if term is not None and variant != "bb" and _pays(w, term):
            block, given = f"{op.name}_{arg}_{variant}", ", ".join(names(term))
            passes[arg] = f"in_blocks({block}, g, {given})"
            w.line(0, f"def {block}(out, {given}):")
            w.expression(1, term, full, reuse=True, into="out")
            w.line(0, "")
    w.line(0, f"def {function}(node, g, heap):")
    if saved:
        w.line(1, f"{', '.join(saved)}{',' if len(saved) == 1 else ''} = node[3]")
    for i, (arg, term) in enumerate(terms.items()):
        w.line(1, f"p = node[{tape.PARENTS + i}]")
        w.line(1, "if p is not None:")
        if term is not None and variant == "bb" and _is_product(term):
            x, y = (w.expression(2, t, full, reuse=False)[0] for t in term.operands)
            w.line(2, f"d = product_to({x}, {y}, {arg}_shape)")
            d, fresh = "d", False
        elif term is not None:
            blocks = passes.get(arg)
            if blocks:
                w.line(2, "if g.size < MANY:")
            d, fresh = w.expression(3 if blocks else 2, term, full, reuse=variant != "bb")
            if blocks:
                w.line(2, "else:")
                w.line(3, f"{d} = {blocks}")
        else:
            rule = w.bind(f"rule_{op.name}_{arg}", op.vjp[arg].fn)
            w.line(2, f"d = {rule}({', '.join(['F', *op.vjp[arg].names])})")
            d, fresh = "d", False
        if variant == "bb" and not (term is not None and _is_product(term)):
            w.line(2, f"d = {d} if {d}.shape == {arg}_shape else sum_to(F, {d}, {arg}_shape)")
            d, fresh = "d", False
        w.line(2, "s = p[1]")
        w.line(2, "if s is None:")
        w.line(3, f"p[1] = {d}")
        w.line(3, "push(heap, p)")
        w.line(2, "else:")
        w.line(3, f"p[1] = np_add(s, {d}, {d})" if fresh else f"p[1] = np_add(s, {d}, out=...)")
    if not terms:
        w.line(1, "pass")
    w.line(0, "")
    return function, saved


def write_forward(
    w: Writer, op: Op, backwards: dict[str, tuple[str, list[str]]], flipped: bool = False, public: str = ""
) -> None:
    """Write the forward function; `flipped` writes the reflected operator, whose first operand is the scalar.

    public: what to call with what the fast path does not take, if it is to take whatever it is given.
    """
    args = op.args
    params = list(op.params)
    defaults = "".join(f", {p}={w.bind(f'default_{p}', op.params[p])}" for p in params)
    keywords = ", ".join(f'"{p}": {p}' for p in params)
    # what torch.<name> is; `out` is looked at only when the operands are of the kind that the fast path takes
    writes = op.pointwise and not params and not flipped
    if flipped:
        w.line(0, f"def r{op.name}({args[1]}, {args[0]}):")
    elif public:
        w.line(0, f"def {op.name}({', '.join(f'{a}=ABSENT' for a in args)}, *rest, out=None, **named):")
    else:
        w.line(0, f"def {op.name}({', '.join(args)}{', *, out=None' if writes else defaults}):")
    gates = ("out is None",) if writes else ()
    gates += ("not (rest or named)",) if public else ()
    w.line(1, "try:")
    if op.pointwise and len(args) == 2:
        loose = args[0] if flipped else args[1]
        w.line(2, f"c = {loose}.__class__")
        if not flipped:
            w.line(2, "if c is Tensor or c is Parameter:")
            _write_call(w, 3, op, args, backwards, ("ff", "bb"), gates)
        scalars = " or ".join(f"c is {kind.__name__}" for kind in NUMBERS.get(w.dtype.kind, ()))
        if op.rule.promote and op.rule.scalars and scalars:
            w.line(2, f"{'if' if flipped else 'elif'} {scalars}:")
            _write_call(w, 3, op, args, backwards, ("sf",) if flipped else ("fs",), gates)
    else:
        _write_call(w, 2, op, args, backwards, tuple(backwards), gates)
    w.line(1, "except (ValueError, AttributeError, TypeError, IndexError, OverflowError):")
    w.line(2, "pass  # `miss` raises the error that fits")
    if public:
        w.line(1, f"return {public}(op_{op.name}, ({', '.join(args)},), rest, out, named)")
        return
    if writes:
        w.line(1, "if out is not None:")
        w.line(2, f"return into(out, '{op.name}', {op.name}, {', '.join(args)})")
    if op.pointwise and not flipped and op.rule.promote and op.rule.scalars in ("any", "one"):
        _write_scalars(w, op)
    w.line(1, f"return miss(op_{op.name}, ({', '.join(args)},), {{{keywords}}})")
    w.line(0, "")


def _write_scalars(w: Writer, op: Op) -> None:
    """Write the way on with Python scalars where the fast path has Tensors."""
    args = ", ".join(op.args)
    if len(op.args) == 2:
        w.line(1, f"c = {op.args[0]}.__class__")
        w.line(1, "if c is first_float or c is first_int:")
        w.line(2, f"return r{op.name}({op.args[1]}, {op.args[0]})")
    elif len(op.args) > 2:
        w.line(1, f"full = with_constants({op.rule.first}, {args})")
        w.line(1, "if full is not None:")
        w.line(2, f"return {op.name}(*full)")


def _write_call(
    w: Writer, depth: int, op: Op, args: tuple[str, ...], backwards: Any, variants: tuple[str, ...],
    gates: tuple[str, ...],
) -> None:  # fmt: skip
    scalar = SCALAR_OPERAND.get(variants[0]) if variants else None
    tests = []
    for i, a in enumerate(args):
        if i == scalar:
            continue
        w.line(depth, f"x{i} = {a}._d")
        tests.append(f"x{i}.dtype is {'BOOL' if i < op.rule.first else 'DT'}")
    w.line(depth, f"if {' and '.join([*tests, *gates])}:")
    depth += 1
    if scalar is not None:
        w.line(depth, f"x{scalar} = SCALARS[{args[scalar]}]")
    call = ", ".join(f"x{i}" for i in range(len(args)))
    if is_ufunc(op):
        w.line(depth, f"r = {w.ufunc(op)}({call}, out=...)")
    else:
        w.line(depth, f"r = k_{op.name}({', '.join([call, *(f'{p}={p}' for p in op.params)])})")
        w.line(depth, "if r.__class__ is not ndarray:")
        w.line(depth + 1, "r = asarray(r)")
    w.line(depth, "t = new(Tensor)")
    w.line(depth, "t._d = r")
    live = live_arguments(op, variants[0]) if variants and backwards else []
    if not live:
        w.line(depth, "t._n = None")
    else:
        _write_history(w, depth, op, backwards, variants, live)
    if op.view and op.vjp:  # detach() shares memory, and is no view
        w.line(depth, "if r.base is not None and (r.base is x0 or r.base is x0.base):")
        w.line(depth + 1, f"note_view(t, {args[0]})")
    w.line(depth, "return t")


def _write_history(w: Writer, depth: int, op: Op, backwards: Any, variants: tuple[str, ...], live: list[str]) -> None:
    """Write statements that give the result `t` its node."""
    position = {a: f"p{i}" for i, a in enumerate(live)}
    for a, p in position.items():
        w.line(depth, f"{p} = {a}._n")
    none = " and ".join(f"{p} is None" for p in position.values())
    whole = f" or not {w.bind('is_inexact', is_inexact)}(r.dtype)" if "dtype" in op.params else ""
    w.line(depth, f"if {f'({none})' if len(live) > 1 else none} or not grad_enabled(){whole}:")
    w.line(depth + 1, "t._n = None")
    for i, variant in enumerate(variants):
        if i + 1 < len(variants):
            w.line(depth, "elif x0.shape == x1.shape:")
        else:
            w.line(depth, "else:")
        w.line(depth + 1, _node(op, backwards[variant], position, variant))


def _node(op: Op, backward: tuple[str, list[str]], position: dict[str, str], variant: str) -> str:
    function, saved = backward
    values = []
    for name in saved:
        users = [a for a in position if name in _needs(op, a)]
        value = _value(op, name)
        keep_always = len(users) == len(position) or name.endswith("_shape") or name in op.params
        values.append(value if keep_always else f"{value} if {_any(position, users)} else None")
    only_shapes = bool(saved) and not any(name in op.args or name == "r" for name in saved)
    packed = f"[{', '.join(values)}]" if only_shapes else f"({', '.join(values)}{',' if len(values) == 1 else ''})"
    return f"t._n = [-next(seq), None, {function}, {packed}, about_{function}, {', '.join(position.values())}]"


def _any(position: dict[str, str], users: list[str]) -> str:
    return " or ".join(f"{position[a]} is not None" for a in users)


def _value(op: Op, name: str) -> str:
    if name in op.args:
        return f"x{op.args.index(name)}"
    base, _, what = name.rpartition("_")
    if what in ("shape", "dtype") and base in op.args:
        return f"x{op.args.index(base)}.{what}"
    return name


def decoder_of(op: Op, saved: list[str], variant: str) -> Callable[[tape.Node], tape.Decoded]:
    live = [op.args.index(a) for a in live_arguments(op, variant)]

    def decode(node: tape.Node) -> tape.Decoded:
        if node[tape.SAVED] is None:
            raise RuntimeError(tape.FREED)
        values = dict(zip(saved, node[tape.SAVED], strict=True))
        params = {p: values[p] for p in op.params if p in values}
        parents = [
            (i, p, values[f"{op.args[i]}_shape"] if variant == "bb" else None)
            for i, p in zip(live, node[tape.PARENTS :], strict=True)
            if p is not None
        ]
        return op, params, values, parents

    return decode
