"""What the code of a function reaches besides its tensor arguments: a walk from its variables over live objects.

Nothing is run: code is read (`bytecode`), and what it names is looked up, as Python would, in cells, globals, instances
and classes. What a chain names exactly is followed exactly; a value that is used in another way *escapes*, and then
every attribute of it that some reached code names, and every element, is reached as well.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from eager.core.tensor import Tensor
from eager.nn.module import Module
from eager.nn.parameter import UninitializedTensorMixin
from graphc.capture.location import line_of
from graphc.capture.state import bytecode
from graphc.capture.state.append_only import WRITERS
from graphc.capture.state.escape_analysis import EscapeAnalysis
from graphc.capture.state.objects import has_item, is_of_users, is_special
from graphc.capture.state.owners import is_installed, is_user_class, is_user_code
from graphc.capture.state.places import Attribute, Cell, ClassOf, DictItem, Inside, Path, RequiresGrad
from graphc.capture.state.settings import SETTINGS
from graphc.capture.state.snapshots import CONTAINERS, MISSING, SCALARS
from graphc.capture.state.worklist import Method
from graphc.capture.tree import children
from graphc.ops.dtypes import default_float

_OF_KIND = frozenset(
    ("shape", "size", "ndim", "dim", "numel", "nelement", "dtype", "type", "itemsize", "element_size", "nbytes",
     "is_floating_point", "is_complex")
)  # fmt: skip
_OF_HISTORY = frozenset(("requires_grad", "is_leaf", "grad_fn"))


class _Context(NamedTuple):
    """What the variables of a code object are bound to, as far as it is known."""

    cells: dict[str, CellType]
    names: dict[str, Any]  # globals
    known: dict[str, tuple[Any, Path]]  # parameters whose values are known


class Reachability(EscapeAnalysis):
    """The walk. `start` it once, `run` it, and read `places`, `names` and `impure`."""

    def __init__(self) -> None:
        super().__init__()
        # by the ids of a function, which is kept, and of what its first parameter is known to be
        self._codes: dict[tuple[int, int], FunctionType] = {}

    def run(self, most: float = math.inf) -> bool:
        """Follow everything that has been started. Whether that were at most so many functions: else it is given up."""
        for setting in SETTINGS:
            self._setting(setting, guarded=setting.read is default_float)
        while True:
            while self._todo:
                if len(self._codes) > most:
                    return False
                self._todo.popleft()()
            if not (self._apply_loose() or self._take_neighbours()):
                return True

    def start(self, fn: Any, arguments: dict[str, Any], positional: tuple[Any, ...]) -> None:
        """Begin at a function, method, module or callable object that is called with these arguments."""
        if isinstance(fn, MethodType) and isinstance(fn.__func__, FunctionType):
            owner = fn.__self__
            self._function(fn.__func__, _here(fn), (owner, Path("self", "")), positional, arguments)
            if isinstance(owner, Module):
                self._module(owner, Path("self", ""))
        elif isinstance(fn, FunctionType):
            self._function(fn, _here(fn), None, positional, arguments)
        elif isinstance(fn, Module):
            self._escape_object(fn, Path("self", ""))
            self._function(type(fn).forward, _here(fn), (fn, Path("self", "")), positional, arguments)
        else:
            self._escape_later(fn, Path("self", ""))
            method = next((vars(k)["__call__"] for k in type(fn).__mro__ if "__call__" in vars(k)), None)
            if isinstance(method, FunctionType):
                self._function(method, _here(fn), (fn, Path("self", "")), positional, arguments)

    def _take_neighbours(self) -> bool:
        """Reach the elements that additions move to where others are asked for: `c.append(x); c[-2]` is the last one
        before the call. Returns whether there are any that were not reached yet."""
        items = [place for place in self._places.values() if isinstance(place, DictItem)]
        found = False
        for place in list(self._places.values()):
            if isinstance(place, Inside) and not place.guarded and isinstance(place.owner, (list, deque)):
                keys = {item.key: item.guarded for item in items if item.owner is place.owner}
                wanted = {*range(max(keys, default=-1) + 1), *range(min(keys, default=0), 0)}
                wanted -= {key for key, guarded in keys.items() if guarded}
                for key in sorted(k for k in wanted if has_item(place.owner, k)):
                    path, found = place.path.item(key), True
                    self._escape_later(self._entry(place.owner, key, path), path)
        return found

    def _function(
        self,
        fn: FunctionType,
        path: Path,
        owner: tuple[Any, Path] | None,
        positional: tuple[Any, ...] = (),
        keywords: dict[str, Any] | None = None,
    ) -> None:
        """The code of a function; `owner` is what its first parameter is known to be, with its path."""
        key = (id(fn), id(owner[0]) if owner else 0)
        if key in self._codes:
            return
        self._codes[key] = fn
        wrapped = fn.__dict__.get("__wrapped__")
        if wrapped is not None:
            self._escape_later(wrapped, path)
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        if not is_user_code(fn.__code__):
            for cell in cells.values():
                self._callable_in(cell, path)
            return
        if not is_installed(fn.__code__):  # whose code users replace, if at all, function by function
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                self._place(Attribute, fn, name, path.attribute(name))
        self._escape_later(fn.__kwdefaults__, path.attribute("__kwdefaults__"))
        known = self._parameters(fn, path, owner, positional, keywords or {})
        self._code(fn.__code__, _Context(cells, fn.__globals__, known))

    def _callable_in(self, cell: CellType, path: Path) -> None:
        """What a library's function has been made from: `vmap(f)` calls `f`."""
        try:
            value = cell.cell_contents
        except ValueError:
            return  # not assigned yet
        of_functions = isinstance(value, dict) and all(map(callable, value.values()))  # as singledispatch has
        if (callable(value) or of_functions) and not isinstance(value, BuiltinFunctionType):
            self._escape_later(value, path)

    def _parameters(
        self, fn: FunctionType, path: Path, owner: Any, positional: tuple[Any, ...], keywords: dict[str, Any]
    ) -> dict[str, tuple[Any, Path]]:
        code = fn.__code__
        parameters = list(code.co_varnames[: code.co_argcount])
        known: dict[str, tuple[Any, Path]] = {}
        defaults = fn.__defaults__ or ()
        named = dict(zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True))
        named.update(fn.__kwdefaults__ or {})
        for name, value in named.items():
            self._escape_later(value, Path(name, name))
        if owner is not None and parameters:
            known[parameters[0]] = owner
        given = dict(zip(parameters[owner is not None :], positional, strict=False)) | keywords
        rest: list[Any] = list(positional[max(len(parameters) - (owner is not None), 0) :])
        for name, value in given.items():
            if isinstance(value, CONTAINERS) or name not in parameters:
                self._argument(value, Path(name, name))
            known[name] = (value, Path(name, name))
        for i, value in enumerate(rest):
            self._argument(value, Path(f"args[{i}]", f"args.{i}"))
        return {name: found for name, found in known.items() if not isinstance(found[0], (*CONTAINERS, Tensor))}

    def _argument(self, value: Any, path: Path) -> None:
        """An argument of the call: tensors in it are inputs, and its structure is known; its objects are state."""
        inside = children(value)
        if inside is not None:
            for name, item in inside:
                self._argument(item, Path(f"{path.shown}.{name}", f"{path.name}.{name}"))
        elif not isinstance(value, (Tensor, *SCALARS)):
            self._escape_later(value, path)

    def _code(self, code: CodeType, context: _Context) -> None:
        found = bytecode.reads_of(code)
        self._loose |= found.loose
        self._probed |= found.probed
        self._loose |= found.probed
        self._reflective = self._reflective or found.reflective
        known = {name: value for name, value in context.known.items() if name not in found.assigned}
        for name in context.known.keys() & found.assigned:
            self._escape_later(*context.known[name])
        context = context._replace(known=known)
        for chain, places in found.chains.items():
            self._chain(chain, context, code, places)
            if chain.root == bytecode.GLOBAL and chain.name == "super":
                for value, path in known.values():
                    self._escape_later(value, path)
            if chain.root == bytecode.GLOBAL and chain.name == "globals":
                for name in found.strings & context.names.keys():
                    self._escape_later(self._entry(context.names, name, Path(name, name)), Path(name, name))
            if chain.root == bytecode.GLOBAL and chain.name in ("eval", "exec"):
                self._texts(found.strings, context)
        for inner in found.inner:
            parameters = inner.co_varnames[: inner.co_argcount + inner.co_kwonlyargcount]
            self._code(inner, context._replace(known={n: v for n, v in known.items() if n not in parameters}))

    def _texts(self, texts: Iterable[str], context: _Context) -> None:
        """What `eval` reads if one of these texts is what it is given; if none can be, all that there is."""
        codes = [code for code in map(bytecode.code_of_text, texts) if code is not None]
        codes = [code for code in codes if not {*context.names, *context.known}.isdisjoint(code.co_names)]
        for code in codes:
            for name in context.known.keys() & code.co_names:
                self._escape_later(*context.known[name])
            self._code(code, context)
        if not codes:
            for name in [name for name in context.names if not is_special(name)]:
                self._escape_later(self._entry(context.names, name, Path(name, name)), Path(name, name))

    def _chain(self, chain: bytecode.Chain, context: _Context, code: CodeType, places: Sequence[int]) -> None:
        name, steps = chain.name, chain.steps
        guarded = not (chain.stored and not steps)
        path = Path(name, name)
        if chain.root in (bytecode.LOCAL, bytecode.CELL) and name in context.known:
            value, path = context.known[name]
        elif chain.root == bytecode.CELL and name in context.cells:
            value = self._place(Cell, context.cells[name], "", path, guarded).before
            if name == "__class__" and not steps:
                return
        elif chain.root == bytecode.GLOBAL:
            value = self._entry(context.names, name, path, guarded)
            if value is MISSING:
                value = getattr(builtins, name, MISSING)
                # packages ask it of tensors, to tell libraries apart: all numbers would be fixed for it
                self.asks_types = self.asks_types or (value is type and not is_installed(code))
        elif chain.root == bytecode.MODULE:
            package = context.names.get("__package__")
            value = sys.modules.get(name) or sys.modules.get(f"{package}.{name}", MISSING)
            self._escape_later(sys.modules.get(name.partition(".")[0], MISSING), path)
        else:
            self._take_loose(steps, chain.stored)
            return
        if guarded:
            self._follow(value, steps, path, chain.stored, (line_of(code, place) for place in places))

    def _follow(
        self, value: Any, steps: tuple[bytecode.Step, ...], path: Path, stored: bool, where: Iterable[str]
    ) -> None:
        """`value` and what `steps` take from it, at the lines `where`; the last step is written if `stored`."""
        for i, step in enumerate(steps):
            last = i == len(steps) - 1
            guarded = not (stored and last)
            if isinstance(value, Tensor):
                self._tensor_asked(value, step.key, path)
                if step.kind == bytecode.ATTRIBUTE and is_of_users(value, step.key, not guarded):
                    path = path.attribute(step.key)
                    value = self._entry(vars(value), step.key, path, guarded)
                    continue
            if value is MISSING or isinstance(value, (Tensor, *SCALARS)):
                self._take_loose(steps[i:], stored)
                return
            if step.kind == bytecode.ITEM:
                if not has_item(value, step.key):
                    self._escape_later(value, path)
                    self._take_loose(steps[i:], stored)
                    return
                path = path.item(step.key)
                value = self._entry(value, step.key, path, guarded)
            elif isinstance(value, CONTAINERS) and not is_user_class(type(value)) and not hasattr(value, "_fields"):
                if last and step.key in WRITERS.get(type(value), ()):
                    bounded = isinstance(value, deque) and value.maxlen is not None
                    # what is added on the left drops what has been added on the right
                    self._place(Inside, value, "", path, guarded=bounded and step.key.endswith("left"))
                    return
                self._escape_later(value, path)
                self._take_loose(steps[i:], stored)
                return
            else:
                owner = value
                path = path.attribute(step.key)
                value = self._attribute(owner, step.key, path, guarded, probe=True)
                if isinstance(value, Method):
                    self._escape_if_foreign(value, owner, path)
                    value = value.function
        if not (stored and steps):
            self._note_impure(value, path, where)
            self._escape_later(value, path)

    def _tensor_asked(self, tensor: Tensor, what: Any, path: Path) -> None:
        """An attribute of a tensor that the program may not use: what Python knows of it is guarded all the same."""
        if what in _OF_KIND and not isinstance(tensor, UninitializedTensorMixin):
            self._place(ClassOf, tensor, "", path)
        elif what in _OF_HISTORY:
            self._place(RequiresGrad, tensor, "", path.attribute("requires_grad"))


def _here(fn: Any) -> Path:
    name = getattr(fn, "__qualname__", type(fn).__qualname__).rpartition("<locals>.")[2]
    return Path(name, name)
