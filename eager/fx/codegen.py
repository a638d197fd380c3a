"""The Python code of a graph. As the classes of `torch.fx.graph` that write it."""

from __future__ import annotations

import builtins
import enum
import math
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from eager.core import homes, pytree
from eager.core.devices import device
from eager.core.pytree import TreeSpec
from eager.core.tensor import Tensor
from eager.fx import naming
from eager.fx.node import Node, map_arg

# what all generated code may name, and no node may be called
RESERVED = ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree")
# functions of `operator` and their signs
_PAIRS = (
    "eq ==|ne !=|lt <|gt >|le <=|ge >=|add +|sub -|mul *|floordiv //|truediv /|div /|mod %|pow **|lshift <<|rshift >>|"
    "and_ &|xor ^|matmul @"
)
BINARY = {name: sign for name, _, sign in [pair.partition(" ") for pair in _PAIRS.split("|")]}
BINARY["or_"] = "|"
# the operators -> how generated code has them, with {} for each argument
OPERATORS = {name: f"{{}} {sign} {{}}" for name, sign in BINARY.items()}
OPERATORS.update(pos="+{}", neg="-{}", invert="~{}", getitem="{}[{}]")
IN_PLACE = {f"i{name.rstrip('_')}": f"{{}} {sign}= {{}}" for name, sign in list(BINARY.items())[6:]}
IN_PLACE["setitem"] = "{}[{}] = {}"
NO_TRACE = "# No stacktrace found for following nodes"

TransformCodeFunc = Callable[[list[str]], list[str]]


def builtin_globals() -> dict[str, Any]:
    """The globals that all generated code has."""
    return {
        "inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": homes.opened("."), "device": device,
        "fx_pytree": homes.opened("fx._pytree"), "pytree": homes.opened("utils._pytree"),
    }  # fmt: skip


@dataclass
class PythonCode:
    """The code of a graph: `src` defines the function `forward`; globals: what it names."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class PyTreeInfo(NamedTuple):
    """How the arguments of a traced function were taken apart, and its result is put together."""

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


def attribute_text(base: str, target: str) -> str:
    """How Python reads the attribute at the dotted path `target` of what is called `base`."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class CodeGen:
    """Writes `forward`. A subclass says what its first line, its arguments and its result are."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The first line, `def forward(self, x):`. free_vars: the arguments, with types and defaults."""
        variables = free_vars if free_vars[:1] == ["self"] else ["self", *free_vars]
        return f"def {self._func_name}({', '.join(variables)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The last line."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, of the arguments of a call."""
        return args

    def process_outputs(self, out: Any) -> Any:
        """The result of a call, of that of the output node."""
        return out

    def additional_globals(self) -> list[tuple[str, Any]]:
        """(name, value) of what the code names besides."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: naming.Namespace,
                         verbose: bool = False) -> PythonCode:  # fmt: skip
        return _Writer(self, root_module, namespace, verbose).code(list(nodes))


class _Writer:
    """Writes the code of one graph."""

    def __init__(self, codegen: CodeGen, root: str, namespace: naming.Namespace, verbose: bool):
        self.codegen = codegen
        self.root = root
        self.namespace = namespace
        self.verbose = verbose
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.free_vars: list[str] = []
        self.body: list[str] = []
        self.returns = ""
        self.told: str | None = None  # the stack trace that the last comment was about

    def code(self, nodes: Sequence[Node]) -> PythonCode:
        self.globals.update(builtin_globals())
        dropped = _dropped_after(nodes)
        starts: list[int] = []
        for node in nodes:
            if self.verbose:
                self.comment(node)
            starts.append(len("".join(self.body).split("\n")))
            self.statement(node)
            self.drop(node, dropped)
        lines = self.body if nodes else ["pass\n"]
        for name, value in self.codegen.additional_globals():
            self.add_global(name, value)
        if self.codegen._body_transformer is not None:
            lines = self.codegen._body_transformer(lines)
        head = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        prologue = self.codegen.gen_fn_def(self.free_vars, self.returns)
        text = "\n".join("    " + line for line in "".join(lines).lstrip("\n").split("\n"))
        before = f"\n{head}\n\n{prologue}"
        first = before.count("\n") + 1
        numbers = {first + start: k for k, start in enumerate(starts)}
        return PythonCode(f"{before}\n{text}", self.globals, numbers, first)  # type: ignore[arg-type]

    def add_global(self, path: str, value: Any) -> str:
        """The name by which the code has `value`, the path of which is `path`."""
        if naming.public_of(value) is not None or (homes.is_ours(getattr(value, "__module__", "")) and "." in path):
            return path  # an attribute of `torch`
        if value is getattr(builtins, path, self):
            return path
        name = naming.ILLEGAL.sub("_", path)
        if self.globals.get(name, value) is not value:
            name = self.namespace.create_name(name, None)
        self.globals[name] = value
        return name

    def statement(self, node: Node) -> None:
        kind = f" : {self.type_text(node.type)}" if node.type is not None else ""
        if node.op == "placeholder":
            self.placeholder(node, kind)
        elif node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type_text(node.type)}"
            self.body.append(self.codegen.generate_output(_Quoted(node.args[0], self)))
        elif (text := self.in_place(node)) is not None:
            self.body.append(f"{text};  {node!r}{kind} = {node.args[0]!r}")
        else:
            self.body.append(f"{node!r}{kind} = {self.call(node)}")
            if node.op == "call_function" and node.meta.get("is_wrapped"):
                self.wrapped.setdefault(self.function(node.target))

    def placeholder(self, node: Node, kind: str) -> None:
        target = str(node.target)
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.free_vars.append(f"{target}{kind}{default}")
        raw = target.lstrip("*")
        if raw != node.name:
            self.body.append(f"{node!r} = {raw}\n")

    def in_place(self, node: Node) -> str | None:
        target: Any = node.target
        name = getattr(target, "__name__", "")
        if node.op != "call_function" or getattr(target, "__module__", None) != "_operator" or name not in IN_PLACE:
            return None
        return IN_PLACE[name].format(*map(self.value, node.args))

    def call(self, node: Node) -> str:
        target: Any = node.target
        if node.op == "get_attr":
            return attribute_text(self.root, target)
        if node.op == "call_method":
            return f"{attribute_text(self.value(node.args[0]), target)}({self.arguments(node.args[1:], node.kwargs)})"
        if node.op == "call_module":
            return f"{attribute_text(self.root, target)}({self.arguments(node.args, node.kwargs)})"
        if target.__module__ == "_operator" and target.__name__ in OPERATORS:
            return OPERATORS[target.__name__].format(*map(self.value, node.args))
        if target is getattr and isinstance(node.args[1], str) and node.args[1].isidentifier() and len(node.args) == 2:
            return f"{self.value(node.args[0])}.{node.args[1]}"
        return f"{self.function(target)}({self.arguments(node.args, node.kwargs)})"

    def function(self, target: Any) -> str:
        name = naming.qualified_name(target)
        if getattr(target, "__module__", None) == "_operator":
            name = f"_{name}"
        return self.add_global(name, target)

    def arguments(self, args: Sequence[Any], kwargs: Any) -> str:
        by_name = (f"{name} = {self.value(value)}" for name, value in kwargs.items())
        return ", ".join([*map(self.value, args), *by_name])

    def value(self, value: Any) -> str:
        """An argument as the code has it."""
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            kind: Any = type(value)
            inside = ", ".join(map(self.value, value))
            return f"{self.add_global(naming.type_text(kind), kind)}({inside})"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {self.value(each)}' for key, each in value.items())}}}"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self.value, (value.start, value.stop, value.step)))})"
        if isinstance(value, enum.Enum):
            kind = type(value)
            return f"{self.add_global(naming.type_text(kind), kind)}.{value.name}"
        if isinstance(value, Tensor):
            shape = ", ".join(map(str, value.shape))
            return f"torch.Tensor of size ({shape})"
        if callable(value) and not isinstance(value, Node):
            return self.function(value) if not isinstance(value, type) else self.type_text(value)
        return repr(value)

    def type_text(self, kind: Any) -> str:
        """A type as the code has it: `typing_List[int]`, with a global for the name."""
        if kind == ():
            return "()"
        args = [] if isinstance(kind, str) else [self.type_text(each) for each in getattr(kind, "__args__", ()) or ()]
        if isinstance(kind, types.UnionType):
            return "|".join(args)
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.add_global(naming.type_text(kind), kind)
        if args and type(kind) is not types.GenericAlias and hasattr(typing, kind._name or ""):
            name = "Union" if origin is typing.Union else kind._name
            origin = getattr(typing, name)
            head = self.add_global(f"typing.{name}", origin)
        else:
            head = self.add_global(naming.type_text(origin), origin)
        return f"{head}[{','.join(args)}]" if args else head

    def drop(self, user: Node, dropped: dict[Node, list[Node]]) -> None:
        """End a statement, and let go of what nobody needs after it."""
        if user.op == "placeholder":
            return
        if user.op == "output":
            self.body.append("\n")
            return
        last = [*dropped.get(user, ()), *(() if user.users else (user,))]
        self.body.append(f";  {' = '.join(map(repr, last))} = None\n" if last else "\n")

    def comment(self, node: Node) -> None:
        if node.op in ("placeholder", "output"):
            return
        trace = node.stack_trace
        if trace == self.told and (trace is not None or self.told is not None):
            return
        if trace is None:
            if self.told != "":
                self.body.append(f"\n{NO_TRACE}\n")
            self.told = ""
        else:
            self.told = trace
            lines = [line.strip() for line in trace.split("\n")]
            at = max(k for k, line in enumerate(lines) if line.startswith("File ") or not k)
            place, _, function = lines[at].removeprefix('File "').replace('", line ', ":").rpartition(", in ")
            self.body.append(f"\n# File: {place} in {function}, code: {' '.join(lines[at + 1 :])}\n")


class _Quoted:
    """The result, whose `repr` is what the code has for it."""

    def __init__(self, value: Any, writer: _Writer):
        self.value = value
        self._text = writer.value(value)

    def __repr__(self) -> str:
        return self._text


def _dropped_after(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """Node -> the nodes that nobody needs after it."""
    found: defaultdict[Node, list[Node]] = defaultdict(list)
    seen: set[Node] = set()
    for user in reversed(nodes):

        def register(node: Node, user: Node = user) -> Node:
            if node not in seen:
                seen.add(node)
                found[user].append(node)
            return node

        map_arg(user.args, register)
        map_arg(user.kwargs, register)
    return found


class PyTreeCodeGen(CodeGen):
    """Code that takes and returns nests, which placeholders and output have flat."""

    def __init__(self, pytree_info: PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.flatten(list(inputs))[0]

    def process_outputs(self, out: Any) -> Any:
        spec = self.pytree_info.out_spec
        if not isinstance(out, (list, tuple)):
            out = [out]
        return out if spec is None else spec.unflatten(out)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        args = self.pytree_info.orig_args
        head = super().gen_fn_def(args, maybe_return_annotation)
        if not free_vars:
            return head
        names = [each.split(":")[0].split("=")[0].strip() for each in free_vars]
        given = [each for each in args if each != "self"]
        return f"{head}\n    {', '.join(names)}, = fx_pytree.tree_flatten_spec([{', '.join(given)}], self._in_spec)"

    def generate_output(self, output_args: Any) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        value = output_args.value
        text = repr(output_args) if isinstance(value, list) else f"[{output_args!r}]"
        return f"return pytree.tree_unflatten({text}, self._out_spec)"
