"""How a graph is called: with the arguments of the function that it was traced from.

Tensors, in whatever nest they came, become the inputs; other values are those of the trace, and asked for again.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from graphc.ir.named import Named, fields_of

_KINDS = inspect.Parameter
DEEPEST = 40  # nests that a text holds
_PLAIN = (bool, int, float, str, type(None))
_LONGEST = 1 << 63

OTHER = "{name}(): argument '{path}' is {got}; the graph was traced for {expected}"
LEFT_OUT = (
    "{name}() also reads {names}, which the function reached by itself or which were added: pass them by name, as in "
    "**{{'{first}': array}}; or pass all {count} inputs by position ({inputs})"
)


@final
class Call:
    """The parameters of a function, and what they were given.

    parameters  as in a `def`: names, "/" and "*" between them, "*rest" and "**options"
    defaults    of those that have one
    given       parameter -> a nest of dicts, lists, tuples and named tuples (for dataclasses, too), with values of
                `leaf` for tensors: Refs to inputs of the graph
    """

    def __init__(self, parameters: tuple[str, ...], defaults: Mapping[str, Any], given: Mapping[str, Any], leaf: type):
        self.parameters = parameters
        self.defaults = defaults
        self.given = given
        self._leaf = leaf

    @cached_property
    def signature(self) -> inspect.Signature:
        """Raises ValueError if the parameters are none that a function could have."""
        kind, found = _KINDS.POSITIONAL_OR_KEYWORD, list[inspect.Parameter]()
        for text in self.parameters:
            if text == "/":
                found = [p.replace(kind=_KINDS.POSITIONAL_ONLY) for p in found]
            elif text == "*":
                kind = _KINDS.KEYWORD_ONLY
            elif text.startswith("**"):
                found.append(inspect.Parameter(text[2:], _KINDS.VAR_KEYWORD))
            elif text.startswith("*"):
                found.append(inspect.Parameter(text[1:], _KINDS.VAR_POSITIONAL))
                kind = _KINDS.KEYWORD_ONLY
            else:
                found.append(inspect.Parameter(text, kind, default=self.defaults.get(text, inspect.Parameter.empty)))
        return inspect.Signature(found)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The ids of the inputs that come from arguments."""
        return tuple(leaf.id for leaf in self._leaves((self.given, dict(self.defaults))))

    def _leaves(self, tree: Any) -> Iterator[Any]:
        if isinstance(tree, self._leaf):
            yield tree
        elif isinstance(tree, (dict, list, tuple)):
            for part in tree.values() if isinstance(tree, dict) else tree:
                yield from self._leaves(part)

    @cached_property
    def is_flat(self) -> bool:
        """Whether the function was given nothing but tensors, by position."""
        plain = all(
            p.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD) for p in self.signature.parameters.values()
        )
        return plain and all(isinstance(value, self._leaf) for value in self.given.values())

    def goes_without_saying(self, inputs: Sequence[tuple[int, str]]) -> bool:
        """Whether it is what is taken for the call of a graph with these inputs that says nothing of it."""
        given = [(leaf.id, name) for name, leaf in self.given.items()] if self.is_flat else None
        return given == list(inputs) and not self.defaults and "/" not in self.parameters

    @property
    def is_written(self) -> bool:
        """Whether a text can hold it."""
        return _is_written(self.defaults, self._leaf, 0) and _is_written(self.given, self._leaf, 0)

    def bind(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[int, Any]:
        """The array for each input that comes from arguments, by id. Raises TypeError for other arguments."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        bound.apply_defaults()
        found: dict[int, Any] = {}
        for parameter, expected in self.given.items():
            self._match(name, parameter, expected, bound.arguments[parameter], found)
        return found

    def _match(self, name: str, path: str, expected: Any, got: Any, found: dict[int, Any]) -> None:
        if isinstance(expected, self._leaf):
            if got is None or isinstance(got, (str, dict)):
                raise TypeError(OTHER.format(name=name, path=path, got=_shown(got), expected="a tensor"))
            found[expected.id] = got
            return
        parts = _parts(expected)
        if parts is None:
            if not _same(expected, got):
                raise TypeError(OTHER.format(name=name, path=path, got=_shown(got), expected=_shown(expected)))
            return
        theirs = _like(expected, got)
        if theirs is None or theirs.keys() != parts.keys():
            raise TypeError(OTHER.format(name=name, path=path, got=_outline(got), expected=_outline(expected)))
        for key, part in parts.items():
            self._match(name, f"{path}.{key}", part, theirs[key], found)


def raw(a: Any) -> Any:
    """The array behind a Tensor; anything else as it is."""
    data = getattr(a, "_d", a)
    return getattr(data, "array", data)


def arrays_of(graph: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
    """The arrays for the inputs of `graph`, in order, from arguments as its function takes them, or one for each input.

    Arguments of the function come first: what is right as such is taken so. Inputs that come from no argument (tensors
    that the function has reached by itself, cotangents) are given by their names.
    """
    call: Call | None = graph.call
    if not kwargs and (call is None or (call.is_flat and call.leaves == graph.inputs)):
        return args
    names = dict(zip(graph.inputs, graph.input_names, strict=True))
    if call is None:  # its inputs are its parameters
        return [call_by_name(graph.name, names, args, kwargs)[id] for id in graph.inputs]
    own = frozenset(call.leaves)
    rest = {id: name for id, name in names.items() if id not in own}
    more = {id: kwargs[name] for id, name in rest.items() if name in kwargs and name not in call.signature.parameters}
    left = {key: value for key, value in kwargs.items() if key not in [names[id] for id in more]}
    try:
        found = call.bind(graph.name, args, left) | more
        missing = [name for id, name in rest.items() if id not in more]
        if missing:
            raise TypeError(LEFT_OUT.format(
                name=graph.name, names=", ".join(map(repr, missing)), first=missing[0], count=len(names),
                inputs=", ".join(names.values()),
            ))  # fmt: skip
    except TypeError:
        if kwargs or len(args) != len(names) or not all(map(_is_array, args)):
            raise
        return args
    return [found[id] for id in graph.inputs]


def call_by_name(
    function: str, names: Mapping[int, str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[int, Any]:
    """The array for each input of a graph that was traced from no function, by position and then by name."""
    found = dict(zip(names, args, strict=False))
    left = [(id, name) for id, name in names.items() if id not in found]
    unexpected = kwargs.keys() - {name for _, name in left}
    missing = [name for _, name in left if name not in kwargs]
    if len(args) > len(names) or unexpected or missing:
        listed = ", ".join(names.values())
        raise TypeError(f"{function}() takes {len(names)} arrays ({listed}), each once, by position or by name")
    return found | {id: kwargs[name] for id, name in left}


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") or isinstance(value, (int, float, complex, np.generic))


def _parts(expected: Any) -> dict[Any, Any] | None:
    """What a nest holds, by key; None for a value."""
    if isinstance(expected, dict):
        return expected
    if isinstance(expected, Named):
        return expected._asdict()
    if type(expected) in (list, tuple):
        return dict(enumerate(expected))
    return None


def _like(expected: Any, got: Any) -> dict[Any, Any] | None:
    """What `got` holds, by key, if it is a container as `expected` is."""
    if isinstance(expected, dict):
        return got if isinstance(got, dict) else None
    if isinstance(expected, Named):
        return fields_of(got) if type(got).__name__ == type(expected).__name__ else None
    if isinstance(got, list if type(expected) is list else tuple) and not hasattr(got, "_fields"):
        return dict(enumerate(got))
    return None


def _same(expected: Any, got: Any) -> bool:
    """Whether a value is that of the trace: of one type, and equal; a float bit for bit, an ndarray by its elements."""
    if expected is got:
        return True
    if type(expected) is not type(got):
        return False
    if isinstance(expected, np.ndarray):
        return expected.shape == got.shape and expected.dtype == got.dtype and expected.tobytes() == got.tobytes()
    if isinstance(expected, float):
        return expected.hex() == got.hex()
    equal: Any = expected == got
    return equal if isinstance(equal, bool) else False


def _shown(value: Any) -> str:
    text = _outline(value) if isinstance(value, (dict, list, tuple)) or hasattr(value, "shape") else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _outline(value: Any) -> str:
    if isinstance(value, dict):
        return f"a dict of {', '.join(map(repr, value)) or 'nothing'}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"a {type(value).__name__} of {', '.join(value._fields)}"  # type: ignore[attr-defined]
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return (
        "a tensor"
        if hasattr(value, "shape")
        else repr(value)
        if isinstance(value, _PLAIN)
        else f"a {type(value).__name__}"
    )


def _is_written(tree: Any, leaf: type, depth: int) -> bool:
    if isinstance(tree, leaf):
        return True
    if depth > DEEPEST:
        return False
    if isinstance(tree, dict):
        plain = all(type(key) in _PLAIN and _is_written(key, leaf, depth) for key in tree)
        return plain and all(_is_written(part, leaf, depth + 1) for part in tree.values())
    if isinstance(tree, Named) and (not tree or any(field.startswith("_") for field in tree._fields)):
        return False
    if type(tree) in (list, tuple) or isinstance(tree, Named):
        return all(_is_written(part, leaf, depth + 1) for part in tree)
    return type(tree) in _PLAIN and not (type(tree) is int and abs(tree) >= _LONGEST)
