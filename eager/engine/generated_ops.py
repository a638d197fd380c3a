"""The functions of the fast path: compiled at first use from what `codegen` writes, kept, and renewed with the op."""

from __future__ import annotations

import heapq
import linecache
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import state, tape
from eager.core.views import note_view
from eager.engine.blocks import MANY, in_blocks, product_to
from eager.engine.codegen import (
    NUMBERS,
    SCALAR_OPERAND,
    Writer,
    decoder_of,
    live_arguments,
    write_backward,
    write_forward,
)
from eager.engine.dispatch import GENERATED
from graphc.ops.dtypes import BOOL, is_inexact, scalar_array
from graphc.ops.interpret import F
from graphc.ops.movement import sum_to
from graphc.ops.spec import Op, Trait

_CLOSED = object()
ABSENT = object()  # in the place of an argument that a user has not given


class ScalarCache(dict):
    """Python number -> 0-d array of one dtype: half the cost of letting NumPy convert it each time.

    Zero is not kept (0.0 == -0.0), nor is nan (nan != nan), nor anything past a bound.
    """

    def __init__(self, dtype: np.dtype):
        super().__init__()
        self.dtype = dtype

    def __missing__(self, value: float) -> np.ndarray:
        array = scalar_array(value, self.dtype)
        array.flags.writeable = False
        if value and value == value and len(self) < 4096:
            self[value] = array
        return array


class Generated:
    """What was generated for one op and dtype: the forward function, and the source text."""

    def __init__(self, forward: Callable[..., Any], source: str):
        self.forward = forward
        self.source = source


class GeneratedOps:
    """Generated functions for one dtype. They share one namespace, whose `DT` is the gate."""

    def __init__(self, dtype: np.dtype, tensor: type, parameter: type, miss: Callable[..., Any]):
        self.dtype = dtype
        self.numbers = NUMBERS.get(dtype.kind, ())
        self.scope: dict[str, Any] = {
            "__name__": f"{GENERATED}{dtype}", "DT": dtype, "BOOL": BOOL, "F": F, "SCALARS": ScalarCache(dtype),
            "Tensor": tensor, "Parameter": parameter, "ndarray": np.ndarray,
            "asarray": np.asarray, "seq": state.sequence, "grad_enabled": state.grad_enabled, "push": heapq.heappush,
            "np_add": np.add, "sum_to": sum_to, "miss": miss,
            "ABSENT": ABSENT, "note_view": note_view, "in_blocks": in_blocks, "product_to": product_to, "MANY": MANY,
            "with_constants": self._with_constants,
            **{f"first_{kind.__name__}": kind if kind in self.numbers else ABSENT for kind in (float, int)},
        }  # fmt: skip
        self.generated: dict[str, Generated] = {}
        self.backwards: dict[str, dict[str, tuple[str, list[str]]]] = {}
        self.operators: dict[str, types.FunctionType] = {}
        self.publics: dict[tuple[str, bool], types.FunctionType] = {}
        state.add_gate(self._set_open)
        state.add_maker(self._set_new)

    def _set_open(self, is_open: bool) -> None:
        self.scope["DT"] = self.dtype if is_open else _CLOSED

    def _set_new(self, new: Callable[..., Any]) -> None:
        self.scope["new"] = new

    def _with_constants(self, first: int, *operands: Any) -> list[Any] | None:
        """The operands with Tensors for the Python scalars among them; None if there are none, or a Tensor is of
        another dtype than the fast path takes: the operands before `first` are bools.
        """
        if self.scope["DT"] is _CLOSED:  # traced numbers show themselves as Python's
            return None
        tensor, scalars = self.scope["Tensor"], 0
        full: list[Any] = []
        for i, x in enumerate(operands):
            if i >= first and x.__class__ in self.numbers:
                scalars += 1
                x = tensor._wrap(self.scope["SCALARS"][x])
            elif not isinstance(x, tensor) or x._d.dtype is not (BOOL if i < first else self.dtype):
                return None
            full.append(x)
        return full if 0 < scalars < len(operands) - first else None

    def get(self, op: Op) -> Callable[..., Any]:
        """The forward function of `op`, generated at first use."""
        known = self.generated.get(op.name)
        if known is None or self.scope["op_" + op.name] is not op:
            known = self.generated[op.name] = self._generate(op)
        return known.forward

    def reflected(self, op: Op) -> Callable[..., Any]:
        """`lambda self, other: op(other, self)` with `other` a Python scalar, for `2.0 - x`."""
        self.get(op)
        return self.scope[f"r{op.name}"]

    def operator(self, op: Op, reflected: bool = False) -> Callable[..., Any]:
        """The forward function of `op` (or its `reflected` one) for Python's operator: the same code but for `miss`."""
        name = f"r{op.name}" if reflected else op.name
        known = self.operators.get(name)
        real = self.reflected(op) if reflected else self.get(op)
        if known is None:
            known = types.FunctionType(_as_operator(real, reflected), self.scope, name, real.__defaults__)
            known.__kwdefaults__ = real.__kwdefaults__
            self.operators[name] = known
        return known

    def public(self, op: Op, method: bool) -> types.FunctionType:
        """The forward function of `op` for users, or its method: what is wrong with a call it hands to `refuse`."""
        known = self.publics.get((op.name, method))
        if known is None:
            self.get(op)
            known = self.publics[op.name, method] = self._public(op, method)
        return known

    def _public(self, op: Op, method: bool) -> types.FunctionType:
        writer = Writer(self.dtype, self.scope)
        write_forward(writer, op, self.backwards[op.name], public="refuse_method" if method else "refuse")
        made: dict[str, Any] = {}
        exec(compile("\n".join(writer.lines), f"<generated {op.name} {self.dtype}>", "exec"), self.scope, made)
        return made[op.name]

    def refresh(self, op: Op) -> None:
        """Generate `op` again after a part of its declaration was replaced; functions handed out before are renewed."""
        old = self.generated.pop(op.name, None)
        if old is None:
            return
        names = [name for name in (op.name, f"r{op.name}") if name in self.scope]
        before = {name: self.scope[name] for name in names}
        new = self._generate(op)
        for name, function in before.items():
            function.__code__ = self.scope[name].__code__
            if name in self.operators:
                self.operators[name].__code__ = _as_operator(function, name != op.name)
            self.scope[name] = function
        for method in (False, True):
            if (public := self.publics.get((op.name, method))) is not None:
                public.__code__ = self._public(op, method).__code__
        self.generated[op.name] = Generated(before[op.name], new.source)

    def _generate(self, op: Op) -> Generated:
        writer = Writer(self.dtype, self.scope)
        self.scope["op_" + op.name] = op
        self.scope["k_" + op.name] = op.kernel
        variants = ("ff",) if len(op.args) == 1 else ("ff", "bb", "fs", "sf") if len(op.args) == 2 else ("bb",)
        if not op.pointwise:
            variants = ("bb",) if op.traits & Trait.BROADCASTS else ("ff",)
        backwards = {v: write_backward(writer, op, v) for v in variants} if op.vjp and is_inexact(self.dtype) else {}
        self.backwards[op.name] = backwards
        write_forward(writer, op, backwards)
        if op.pointwise and len(op.args) == 2:
            write_forward(writer, op, backwards, flipped=True)
        source = "\n".join(writer.lines) + "\n"
        filename = f"<generated {op.name} {self.dtype}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec"), self.scope)
        for variant, (function, saved) in backwards.items():
            edges = None
            if variant in SCALAR_OPERAND and variant not in op.overloads:
                # PyTorch makes 2 + x of x + 2
                edges = [0] if op.commutative else [op.args.index(a) for a in live_arguments(op, variant)], len(op.args)
            self.scope[f"about_{function}"] = tape.Backward(
                self.scope[function],
                op.overloads.get(variant, op.node_name),
                decode=decoder_of(op, saved, variant),
                naming=op.naming,
                edges=edges,
            )
        forward = self.scope[op.name]
        forward.__doc__ = op.doc or f"The op `{op.name}`; see `graphc.ops`."
        return Generated(forward, source)


def _as_operator(function: Any, reflected: bool) -> types.CodeType:
    """The code of a forward function, with `miss_operator` or `miss_reflected` for `miss`, and without Python numbers
    as first operands: `Tensor.__add__(2, t)` is an error."""
    others = {
        "miss": "miss_reflected" if reflected else "miss_operator",
        "first_float": "ABSENT",
        "first_int": "ABSENT",
    }
    code = function.__code__
    return code.replace(co_names=tuple([others.get(name, name) for name in code.co_names]))
