"""L-BFGS: a quasi-Newton method that keeps the last steps instead of a Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.core.grad_mode import enable_grad, no_grad
from eager.core.interpreter import current_interpreter
from eager.functional.creation import zeros_like
from eager.functional.joining import cat
from eager.optim.line_search import strong_wolfe
from eager.optim.optimizer import Optimizer, ParamsT
from eager.optim.state import parts
from graphc.errors import DECIDES_ON_VALUES, CaptureError

LEAST_CURVATURE = 1e-10  # a step with less is not remembered: it would spoil the approximation


class LBFGS(Optimizer):
    """Nocedal and Wright, Numerical Optimization, algorithm 7.4. As `torch.optim.LBFGS`.

    A step makes up to `max_iter` iterations and calls `closure` up to `max_eval` times (default 1.25 `max_iter`).
    line_search_fn: None for steps of length `lr`, or "strong_wolfe". There is one parameter group only.
    """

    _settings = "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn"
    _checks = "lr"

    def __init__(
        self, params: ParamsT, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ):  # fmt: skip
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        self._begin(locals())
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Any] = self.param_groups[0]["params"]

    def _as_pytorch_has_it(self, state: Any) -> Any:
        state = super()._as_pytorch_has_it(state)
        return {**state, "_numel_cache": None} if isinstance(state, dict) else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]  # PyTorch's pickles lack it

    def _gradient(self) -> Any:
        """The gradients of all parameters in one row."""
        return cat([parts(zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in self._params])

    def _move(self, length: Any, direction: Any) -> None:
        at = 0
        for parameter in map(parts, self._params):
            size = parameter.numel()
            parameter.add_(direction[at : at + size].reshape(parameter.shape) * length)
            at += size

    def _search(self, closure: Callable[[], Any], length: Any, direction: Any, loss: float, gradient: Any, slope: Any,
                calls: int) -> tuple[float, Any, Any, int]:  # fmt: skip
        start = [parameter.clone() for parameter in self._params]

        def probe(length: Any) -> tuple[float, Any]:
            self._move(length, direction)
            found = float(closure()), self._gradient()
            for parameter, value in zip(self._params, start, strict=True):
                parameter.copy_(value)
            return found

        return strong_wolfe(probe, length, loss, gradient, slope, direction, most_calls=calls)

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """One step; `closure` clears the gradients, recomputes the loss and its gradients, and returns the loss.

        CaptureError in a function that is being compiled: only the loss in `closure` may be compiled.
        """
        if not current_interpreter().immediate:
            raise CaptureError(DECIDES_ON_VALUES.format(what="LBFGS.step()"))
        with no_grad():
            return self._iterate(enable_grad()(closure))

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        memory = self.state[self._params[0]]  # one for all: kept with the first parameter, in its dtype
        memory.setdefault("func_evals", 0)
        memory.setdefault("n_iter", 0)
        first_loss = closure()
        loss, calls = float(first_loss), 1
        memory["func_evals"] += 1
        gradient = self._gradient()
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            memory["n_iter"] += 1
            first = memory["n_iter"] == 1
            if first:
                memory.update(d=-gradient, t=None, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                _remember(memory, gradient, group["history_size"])
                memory["d"] = _newton_direction(memory, gradient, group["history_size"])
            direction: Any = memory["d"]
            memory["prev_flat_grad"], memory["prev_loss"] = gradient.clone(), loss
            before = loss
            length: Any = min(1.0, 1.0 / gradient.abs().sum()) * lr if first else lr
            memory["t"] = length
            slope = gradient.dot(direction)
            if slope > -tolerance:
                break
            made = 0
            if group["line_search_fn"] is not None:
                budget = group["max_eval"] - calls
                loss, gradient, length, made = self._search(closure, length, direction, loss, gradient, slope, budget)
                memory["t"] = length
                self._move(length, direction)
            else:
                self._move(length, direction)
                if iteration != group["max_iter"]:  # in a stochastic setting the next step evaluates anew anyway
                    loss, gradient, made = float(closure()), self._gradient(), 1
            calls += made
            memory["func_evals"] += made
            if (
                calls >= group["max_eval"]
                or gradient.abs().max() <= group["tolerance_grad"]
                or (direction * length).abs().max() <= tolerance
                or abs(loss - before) < tolerance
            ):
                break
        return first_loss


def _remember(memory: dict[str, Any], gradient: Any, most: int) -> None:
    """Add the last step and the change of the gradient along it, if it shows curvature."""
    change = gradient - memory["prev_flat_grad"]
    step = memory["d"] * memory["t"]
    curvature = change.dot(step)
    if curvature > LEAST_CURVATURE:
        for name, value in (("old_dirs", change), ("old_stps", step), ("ro", 1.0 / curvature)):
            if len(memory[name]) == most:
                memory[name].pop(0)
            memory[name].append(value)
        memory["H_diag"] = curvature / change.dot(change)


def _newton_direction(memory: dict[str, Any], gradient: Any, most: int) -> Any:
    """Minus the approximate inverse Hessian times the gradient (the two-loop recursion)."""
    pairs = list(zip(memory["old_dirs"], memory["old_stps"], memory["ro"], strict=True))
    weights = memory.setdefault("al", [None] * most)
    direction = -gradient
    for i, (change, step, inverse) in reversed(list(enumerate(pairs))):
        weights[i] = step.dot(direction) * inverse
        direction = direction - change * weights[i]
    direction = direction * memory["H_diag"]
    for i, (change, step, inverse) in enumerate(pairs):
        direction = direction + step * (weights[i] - change.dot(direction) * inverse)
    return direction
