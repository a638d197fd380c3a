"""`no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`: contexts and decorators, local to the thread."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar, overload

from eager.core.shown import ShownObject
from eager.core.state import GRAD_ENABLED, INFERENCE, Recent, grad_enabled, made_in_inference, track_tensors

Fn = TypeVar("Fn", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Whether operations are recorded, so that gradients can be computed. As `torch.is_grad_enabled`."""
    return grad_enabled()


def is_generator_function(fn: Callable[..., Any]) -> bool:
    """As `inspect.isgeneratorfunction`, which takes 3 ms to import."""
    code = getattr(fn, "__code__", None)
    return code is not None and bool(code.co_flags & 0x20)  # inspect.CO_GENERATOR


class GradMode(ShownObject):
    """Sets the gradient mode on entry and restores it on exit; may be entered again while it is active."""

    def __init__(self, mode: bool):
        self.mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(grad_enabled())
        GRAD_ENABLED.set(self.mode)

    def __exit__(self, *error: object) -> None:
        GRAD_ENABLED.set(self._before.pop())

    def __call__(self, fn: Fn) -> Fn:
        context = self.again
        if is_generator_function(fn):
            return _wrap_generator(fn, context)  # type: ignore[return-value]

        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with context():
                return fn(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def again(self) -> GradMode:
        """Another context of the same kind."""
        return GradMode(self.mode)


def _wrap_generator(fn: Callable[..., Any], context: Callable[[], GradMode]) -> Callable[..., Any]:
    """Run the generator's body, and only its body, in `context`."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with context():
            generator = fn(*args, **kwargs)
            try:
                value = next(generator)
            except StopIteration as stop:
                return stop.value
        while True:
            try:
                sent = yield value
            except GeneratorExit:
                with context():
                    generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)
            else:
                step = functools.partial(generator.send, sent)
            with context():
                try:
                    value = step()
                except StopIteration as stop:
                    return stop.value

    return wrapped


class _OfNothing(GradMode):
    """A context that is made of nothing, so that it decorates a function without parentheses, too: @no_grad."""

    _mode: bool

    @overload
    def __new__(cls, fn: None = None) -> Self: ...

    @overload
    def __new__(cls, fn: Fn) -> Fn: ...

    def __new__(cls, fn: Any = None) -> Any:
        instance = object.__new__(cls)
        if fn is None:
            return instance
        instance.__init__()
        return instance(fn)

    def __init__(self, fn: Any = None):
        super().__init__(self._mode)


class no_grad(_OfNothing):
    """Operations inside are not recorded. As `torch.no_grad`."""

    _mode = False


class inference_mode(GradMode):
    """As `no_grad`, and tensors made inside can never take part in a recorded operation. As `torch.inference_mode`.

    `mode=False` leaves recording on.
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...

    @overload
    def __new__(cls, mode: Fn) -> Fn: ...

    def __new__(cls, mode: Any = True) -> Any:
        instance = object.__new__(cls)
        if isinstance(mode, bool):
            return instance
        instance.__init__()
        return instance(mode)  # @inference_mode without parentheses

    def __init__(self, mode: bool = True):
        super().__init__(not mode)
        self._tokens: list[Any] = []

    def again(self) -> inference_mode:
        return inference_mode(not self.mode)

    def __enter__(self) -> None:
        super().__enter__()
        outer = made_in_inference()
        made = None if self.mode else outer if outer is not None else Recent()
        self._tokens.append((INFERENCE.set(made), made is not None and outer is None))
        track_tensors(+1)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        token, outermost = self._tokens.pop()
        made = made_in_inference()
        INFERENCE.reset(token)
        track_tensors(-1)
        if outermost and made is not None:
            for tensor in made.live():
                tensor._seal()


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on."""
    return made_in_inference() is not None


class enable_grad(_OfNothing):
    """Operations inside are recorded again. As `torch.enable_grad`."""

    _mode = True


class set_grad_enabled(GradMode):
    """Set the mode at once; as a context, restore it at the end. As `torch.set_grad_enabled`."""

    def __init__(self, mode: bool):
        super().__init__(mode)
        self._before.append(grad_enabled())
        GRAD_ENABLED.set(mode)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def __call__(self, fn: Fn) -> Fn:
        GRAD_ENABLED.set(self._before[0])  # as a decorator it does not set the mode at once
        return super().__call__(fn)

    def __enter__(self) -> None:
        pass


class set_multithreading_enabled(ShownObject):
    """Accepted: backward() runs in the thread that calls it. As `torch.autograd.set_multithreading_enabled`."""

    def __init__(self, mode: bool):
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass
