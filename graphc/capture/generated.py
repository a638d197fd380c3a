"""Python that is written for one program: lines of code, and the objects that they name."""

from __future__ import annotations

import itertools
import linecache
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

_numbers = itertools.count()
MANY, LIST = 64, "objects"  # passing more of them to each call takes longer than to find each in a list
_NAMES = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\bv(\d+)\b"
)  # and strings, in which there may be such names


def indented(lines: Sequence[str]) -> list[str]:
    """The lines one step further in."""
    return [f" {line}" for line in lines]


@final
class Names:
    """Names for objects in generated code, each object under one name. The objects live as long as the code does.

    >>> names = Names()
    >>> limit = 3 * [0]
    >>> f = names.bind("f", ["def f(x):", f" return x is {names.of(limit)}"])
    >>> f(limit), f([0, 0, 0])
    (True, False)
    """

    def __init__(self):
        self._names: dict[int, str] = {}
        self._scope: dict[str, Any] = {}

    def of(self, value: Any) -> str:
        """The expression of an object."""
        if value is None or value is True or value is False:
            return repr(value)
        found = self._names.get(id(value))
        if found is None:
            found = self._names[id(value)] = f"v{len(self._scope)}"
            self._scope[found] = value
        return found

    def bind(
        self,
        name: str,
        lines: Sequence[str],
        known: Mapping[str, Any] | None = None,
        shared: dict[str, Any] | None = None,
    ) -> Callable[..., Any]:
        """The function `name` that `lines`, the first of them its `def`, define.

        known   further objects, by name
        shared  the globals of the function: may change as long as it lives

        The objects are defaults of parameters: locals, which lie side by side in memory. If there are many, they are in
        a list that is one.
        """
        objects = {**self._scope, **(known or {})}
        if len(objects) > MANY:
            lines = [_NAMES.sub(lambda found: f"{LIST}[{found[1]}]" if found[1] else found[0], line) for line in lines]
            objects = {**(known or {}), LIST: list(self._scope.values())}
        head, *body = lines
        parameters = head[head.index("(") + 1 : head.rindex(")")]
        defaults = ", ".join([*([parameters] if parameters else []), *(f"{n}={n}" for n in objects)])
        text = [f"def bind({', '.join(objects)}):", f" def {name}({defaults}):", *indented(body)]
        local: dict[str, Any] = {}
        source, filename = "\n".join([*text, f" return {name}"]), f"<generated {name} {next(_numbers)}>"
        exec(compile(source, filename, "exec"), {} if shared is None else shared, local)
        function = local["bind"](**objects)
        # for `inspect.getsource` and tracebacks, as long as the function lives
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        weakref.finalize(function, linecache.cache.pop, filename, None)
        return function
