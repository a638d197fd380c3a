"""What a profile of `torch.profiler` has of compiled functions: guards, executable, results; or their trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eager.core.interpreter import on_arrays
from eager.core.meta import is_meta
from eager.profiling.recorder import Recorder
from graphc.compiling.disable import switch


@contextmanager
def _event(recorder: Recorder, name: str) -> Iterator[None]:
    event = recorder.open(name)
    try:
        yield
    finally:
        recorder.close(event)


@contextmanager
def _watched(recorder: Recorder, executable: Any) -> Iterator[None]:
    """A context in which calls of `executable` are events, at whose end the results are there."""
    where = "NumPy" if executable.on_host else "XLA"
    name = f"graphc::executable {executable.graph.name} ({len(executable.graph)} nodes, {where})"
    if executable.on_host:  # its function is part of the code of the call
        with _event(recorder, name):
            yield
        return
    dispatch, into = executable.dispatch, executable.into

    def timed(*arrays: Any) -> Any:
        with _event(recorder, name):
            return _awaited(dispatch(*arrays))

    def timed_into(done: list[Any], arrays: Any) -> None:
        with _event(recorder, name):
            into(done, arrays)
            _awaited(done[-1])

    executable.dispatch, executable.into = timed, timed_into
    try:
        yield
    finally:  # the first call has put others in their places
        executable.dispatch = dispatch if executable.dispatch is timed else executable.dispatch
        executable.into = into if executable.into is timed_into else executable.into


def _awaited(outputs: Sequence[Any]) -> Sequence[Any]:
    for output in outputs:
        output.block_until_ready()
    return outputs


def instrument(compiled: type) -> Callable[[Recorder], Any]:
    """For `eager.profiling.instruments`: times the calls of the class `compiled`."""

    @contextmanager
    def timing(recorder: Recorder) -> Iterator[None]:
        usual = vars(compiled)["__call__"]

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if switch.off or not on_arrays():
                return usual(self, *args, **kwargs)
            with _event(recorder, f"graphc::compiled {self.__name__}"):
                with _event(recorder, "graphc::guards"):
                    known = self._signatures.of(args, kwargs)
                    found = self._find(known)
                waiting = self._waiting is not None and self._waiting.waits(known.signature, self._specializations)
                if waiting or any(map(is_meta, known.tensors)):
                    return usual(self, *args, **kwargs)
                if found is None:
                    with _event(recorder, "graphc::trace and compile"):
                        return self._trace_and_run(known)
                with _watched(recorder, found.runner.forward), _event(recorder, "graphc::results"):
                    return self._run(found, known)

        compiled.__call__ = call  # type: ignore[method-assign]
        try:
            yield
        finally:
            compiled.__call__ = usual  # type: ignore[method-assign]

    return timing
