"""Rows for PyTorch: the same function written for PyTorch, on the same tensors, where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from compare.benchmarking.result import FORWARD
from compare.benchmarking.rows import Contender, Cost, Row
from compare.cases.case import Case
from compare.cases.joint import gradient_label
from compare.cases.outcome import Outcome, flatten, is_number
from compare.judging.tolerance import same_bits
from compare.locating.culprit import Culprit
from eager.nn import Module
from graphc.capture.tree import Slot, map_tensors
from graphc.errors import require
from graphc.ops.aval import aval_of


def torch_rows(fn: Callable[..., Any]) -> dict[str, Row]:
    """The rows "torch" and "torch.compile" for a function of PyTorch tensors. Raises MissingExtraError."""
    torch = require("torch", "a row for PyTorch", "torch")
    plain = InTorch("torch", fn, torch)

    def compiled(case: Case, what: str) -> Contender:
        return InTorch("torch.compile", torch.compile(fn), torch).contender(case, what)

    # both are checked as "torch": a run of the compiled function before the clock starts would hide what it costs
    return {"torch": Row(plain.contender, (plain,)), "torch.compile": Row(compiled, (plain,))}


@final
class InTorch:
    """A mode (see `compare.register_mode`): `fn` on PyTorch tensors with the values of the case's."""

    wide, repeats = False, False

    def __init__(self, name: str, fn: Callable[..., Any], torch: Any):
        self.name = name
        self._fn = fn
        self._torch = torch

    def run(self, case: Case) -> Outcome:
        try:
            return self._outcome(case)
        except Exception as error:
            return Outcome(error=error)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        """None: PyTorch is not looked into."""
        return None

    def contender(self, case: Case, what: str) -> Contender:
        """The row that times it."""
        call = _Call(self._torch, self._fn, case)
        return Contender(self.name, call.forward if what == FORWARD else call.both, lambda: Cost({}, None))

    def _outcome(self, case: Case) -> Outcome:
        call = _Call(self._torch, self._fn, case)
        before = {id(t): t.detach().clone() for t in call.known.values()}
        result = self._fn(*call.args, **call.kwargs)
        structure, leaves = flatten(result, lambda x: isinstance(x, self._torch.Tensor) or is_number(x))
        tensors = {label: t for label, t in leaves.items() if isinstance(t, self._torch.Tensor)}
        values = {label: _array(leaf) for label, leaf in leaves.items()}
        gradients = call.gradients(tensors) if case.wrt and case.program is not None and case.joint.seeded else ()
        after = {i.name: call.known.get(id(i.tensor)) for i in case.inputs}
        changes = {
            f"{name} after the call": _array(t)
            for name, t in after.items()
            if t is not None and not same_bits(_array(t), _array(before[id(t)]))
        }
        return Outcome(
            structure,
            values,
            {label: aval_of(values[label]) for label in tensors},
            {label: t.requires_grad for label, t in tensors.items()},
            {
                gradient_label(i): np.zeros(i.tensor._d.shape, i.tensor._dtype()) if g is None else _array(g)
                for i, g in zip(case.wrt, gradients, strict=False)
            },
            changes,
        )


@final
class _Call:
    """A call of `fn`. `known`: by id of the case's tensor, the one of PyTorch that stands for it."""

    def __init__(self, torch: Any, fn: Callable[..., Any], case: Case):
        self._torch, self._fn, self._case = torch, fn, case
        self.known: dict[int, Any] = {}
        self.args = [map_tensors(a, self._converted) for a in case.args]
        self.kwargs = {name: map_tensors(a, self._converted) for name, a in case.kwargs.items()}
        module: Any = getattr(fn, "_orig_mod", fn)  # what torch.compile has wrapped
        if isinstance(case.fn, Module) and isinstance(module, torch.nn.Module):
            theirs = dict(module.named_parameters())
            ours = dict(case.fn.named_parameters())
            self.known |= {id(ours[name]): theirs[name] for name in ours if name in theirs}

    def _converted(self, tensor: Any, path: str) -> Any:
        if id(tensor) not in self.known:
            own = self._torch.from_numpy(np.array(tensor._array()))
            self.known[id(tensor)] = own.requires_grad_(tensor.requires_grad)
        return self.known[id(tensor)]

    def forward(self) -> Any:
        return self._fn(*self.args, **self.kwargs)

    def both(self) -> Any:
        result = self._fn(*self.args, **self.kwargs)
        return self.gradients(flatten(result, lambda x: isinstance(x, self._torch.Tensor))[1])

    def gradients(self, outputs: Any) -> Any:
        """Of the tensors of a result, by label, with the case's cotangents."""
        labels = {leaf.index: label for label, leaf in self._case.slots.items() if type(leaf) is Slot}
        live = [outputs[labels[k]] for k in self._case.joint.seeded]
        cotangents = [self._torch.from_numpy(a) for a in self._case.cotangents]
        return self._torch.autograd.grad(live, self._wrt, cotangents, allow_unused=True)

    @property
    def _wrt(self) -> list[Any]:
        found = [self.known.get(id(i.tensor)) for i in self._case.wrt]
        if None in found:
            name = self._case.wrt[found.index(None)].name
            raise ValueError(
                f"torch_fn does not get '{name}', for which there is a gradient. "
                "Remedy: pass it as an argument, or give a module of each library with the same parameters."
            )
        return found


def _array(leaf: Any) -> np.ndarray:
    return np.array(leaf.detach().numpy() if hasattr(leaf, "detach") else leaf)
