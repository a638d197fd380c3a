"""`torch.amp.GradScaler`: losses are scaled so that small gradients do not vanish in float16."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from eager.core import dtypes
from eager.core.devices import CPU
from eager.core.grad_mode import no_grad
from eager.core.shown import ShownObject
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.creation import full
from graphc.ops.dtypes import FLOAT32, INT32

__all__ = ["GradScaler", "OptState"]

NO_CUDA = "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
NOT_SCALED = (
    "Attempted {name} but {what} is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
    "earlier in the iteration."
)
NEW_SCALE = (
    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False."
)
PASSES_ITSELF = (
    "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
    "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer "
    "use them directly."
)


class OptState(Enum):
    """How far an optimizer is since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _number(value: float) -> Tensor:
    return full((), value, dtype=dtypes.float32)


class GradScaler(ShownObject):
    """Scales losses, unscales gradients, and skips steps whose gradients are not finite. As `torch.amp.GradScaler`.

    device           "cpu"; "cuda" warns and disables the scaler, as in a build without CUDA
    init_scale       the first factor
    growth_factor    by which the scale grows after `growth_interval` steps in a row that were not skipped
    backoff_factor   by which it shrinks after a step that was skipped
    enabled          False: outputs are left as they are, and `step` is that of the optimizer

    The scale is a 0-d float32 tensor, the number of steps since it last changed one of int32; both are made by the
    first call of `scale`.

    Raises AssertionError unless growth_factor > 1 and backoff_factor < 1.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled:
            warnings.warn(NO_CUDA, stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _check_scale_growth_tracker(self, name: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            what = "_scale" if self._scale is None else "_growth_tracker"
            raise AssertionError(NOT_SCALED.format(name=name, what=what))
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """`outputs`, a tensor or an iterable of such (lists and tuples stay what they are), times the scale.

        Raises ValueError for anything else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = _number(self._init_scale)
                self._growth_tracker = full((), self._init_growth_tracker, dtype=dtypes.int32)
            return E.mul(outputs, self._scale)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return outputs.__class__(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    @no_grad()
    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiply all gradients by `inv_scale`. Returns 1 by device if one of them was not finite, else `found_inf`.

        ValueError for gradients of float16, before any is changed.
        """
        grads = []
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, Tensor):
                    raise AssertionError(f"expected param to be torch.Tensor, got {type(param).__name__}")
                if param.grad is None:
                    continue
                if not allow_fp16 and param.grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads.append(param.grad)
        for grad in grads:
            found_inf = E.where(E.isfinite(grad).all(), found_inf, E.full(shape=(), value=1, dtype=FLOAT32))
            grad.mul_(inv_scale)
        return {CPU: found_inf} if grads else {}

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the parameters of `optimizer` by the scale, and note whether all are finite.

        `step` does it if it has not been done. Raises RuntimeError if it has, or `step` has been called, since the last
        `update`; ValueError for gradients of float16.
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if known["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()  # rounded once
        known["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, _number(0.0), False)
        known["stage"] = OptState.UNSCALED

    def _maybe_opt_step(self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(...)`, unless a gradient was not finite: then None."""
        if not sum(found.item() for found in state["found_inf_per_device"].values()):
            return optimizer.step(*args, **kwargs)
        return None

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`unscale_(optimizer)`, if that has not been done, and `optimizer.step(...)` if all gradients are finite.

        Returns what that returns, or None. Raises RuntimeError for a `closure`, and if it has been called since the
        last `update`; AssertionError if nothing has been scaled, or no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_that_unscales(optimizer, known, args, kwargs)
        else:
            if known["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not known["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, known, *args, **kwargs)
        known["stage"] = OptState.STEPPED
        return result

    def _step_that_unscales(
        self, optimizer: Any, known: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The step of an optimizer that takes the scale into account itself: it finds it in attributes."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(PASSES_ITSELF, FutureWarning, stacklevel=3)
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        before = getattr(optimizer, "grad_scale", None)
        if known["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
            assert self._scale is not None
            before = self._scale if before is None else self._scale * before
        optimizer.grad_scale, optimizer.found_inf = before, sum(known["found_inf_per_device"].values())
        result = optimizer.step(*args, **kwargs)
        del optimizer.grad_scale, optimizer.found_inf
        return result

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Note whether all gradients are finite, and leave them as they are."""
        self._check_scale_growth_tracker("_check_inf_per_device")
        found = self._unscale_grads_(optimizer, _number(1.0), _number(0.0), True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    @no_grad()
    def update(self, new_scale: Any = None) -> None:
        """Let the scale shrink if a step was skipped, grow after enough that were not, or be `new_scale`.

        new_scale: a float, or a tensor with one element that does not require grad, of which the value is taken.

        Raises AssertionError for another `new_scale`, and if no optimizer has been checked since the last time.
        """
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(NEW_SCALE)
            scale.copy_(new_scale)
        else:
            states = self._per_optimizer_states.values()
            found = [found for known in states for found in known["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._move(scale, tracker, sum(found[1:], found[0]) != 0)
        self._per_optimizer_states.clear()  # the same dict: a compiled step is one for each that it finds

    def _move(self, scale: Tensor, tracker: Tensor, skipped: Any) -> None:
        """Write the next scale and tracker. A scale that is not finite any more stays as it was."""
        steps = tracker + 1
        due = steps == self._growth_interval
        grown = E.mul(scale, self._growth_factor)
        grown = E.where(E.isfinite(grown), grown, scale)
        shrunk = E.mul(scale, self._backoff_factor)
        tracker.copy_(E.where(skipped | due, E.full(shape=(), value=0, dtype=INT32), steps))
        scale.copy_(E.where(skipped, shrunk, E.where(due, grown, scale)))

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale as a number; 1.0 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """The growth factor."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The backoff factor."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The growth interval."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the growth interval."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The state in numbers, as PyTorch writes it; empty if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; nothing if the scaler is disabled. RuntimeError if that is empty."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, with the tensors to be made anew. AssertionError between `unscale_` and `update`."""
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state |= {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker()}
            state |= {"_scale": None, "_growth_tracker": None}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
