"""A random program: source text on `eager`, with the inputs that it was made for."""

from __future__ import annotations

import ast
import itertools
import linecache
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

import eager
import graphc
from compare.fuzzing.origins import declarations_for
from compare.layouts.layout import Layout, layout_of
from eager.core.tensor import Tensor
from eager.engine.language import E

_HEAD = "import numpy as np\n\nimport eager as torch\nimport graphc\nfrom eager.engine.language import E\n\n\n"
_numbers = itertools.count()


def names() -> dict[str, Any]:
    """What the text of a program may name, besides its own variables."""
    return {"np": np, "torch": eager, "graphc": graphc, "E": E}


class Input(NamedTuple):
    """An argument of a program.

    layout  how the elements of `array` lie in memory; None: as in a new array
    view    an expression of an earlier input, in whose memory they lie; "" for memory of its own
    """

    name: str
    array: np.ndarray
    requires_grad: bool
    layout: Layout | None = None
    view: str = ""

    @classmethod
    def of(cls, name: str, array: np.ndarray, requires_grad: bool) -> Input:
        """An argument with the values of `array`, which lies as that does."""
        found = None if array.flags.carray else layout_of(array)
        if found is not None and found.is_plain(array.shape):
            found = None
        return cls(name, np.array(array, order="C"), requires_grad, found)

    def tensor(self, earlier: Mapping[str, Tensor]) -> Tensor:
        """A new tensor with these values; `earlier`: the inputs before this one, by name."""
        if self.view:
            made = eval(self.view, {**names(), **earlier})
        else:
            made = Tensor._wrap(self.array.copy() if self.layout is None else self.layout.placed(self.array))
        return made.requires_grad_(self.requires_grad)

    @property
    def text(self) -> str:
        """An expression of the tensor, in a script."""
        array = array_literal(self.array)
        if self.layout is not None:
            array = f"placed({array}, {', '.join(map(repr, self.layout))})"
        return (self.view or f"torch.from_numpy({array})") + ".requires_grad_()" * self.requires_grad

    def reads(self) -> set[str]:
        """The names of inputs in whose memory it lies."""
        return {n.id for n in ast.walk(ast.parse(self.view)) if isinstance(n, ast.Name)} if self.view else set()


class Statement(NamedTuple):
    """One step of a program.

    text    Python, perhaps several lines
    makes   the variables that it defines
    reads   the variables that it uses
    ops     the ops of the registry that it is there for
    writes  the variables of `reads` that it changes in place
    """

    text: str
    makes: tuple[str, ...]
    reads: tuple[str, ...]
    ops: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@final
class Program:
    """A function of tensors, as text: `inputs`, then `statements`; it returns the variables `results` as a tuple.

    pairs  (an op that makes a value, an op that takes it), of those that the program was made for
    """

    def __init__(
        self, name: str, inputs: Sequence[Input], statements: Sequence[Statement], results: Sequence[str],
        pairs: Sequence[tuple[str, str]] = (),
    ):  # fmt: skip
        self.name = name
        self.inputs = tuple(_complete(inputs))
        self.statements = tuple(statements)
        self.results = tuple(results)
        self.pairs = tuple(pairs)

    @cached_property
    def source(self) -> str:
        """The definition of the function."""
        body = [line for s in self.statements for line in s.text.split("\n")]
        body.append(f"return {', '.join(self.results)}{',' if len(self.results) == 1 else ''}")
        return f"def {self.name}({', '.join(i.name for i in self.inputs)}):\n    " + "\n    ".join(body) + "\n"

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function itself, whose lines `linecache` knows."""
        filename = f"<random program {self.name} {next(_numbers)}>"
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(keepends=True), filename)
        scope = names()
        exec(compile(self.source, filename, "exec"), scope)
        weakref.finalize(scope[self.name], linecache.cache.pop, filename, None)
        return scope[self.name]

    def arguments(self) -> list[Tensor]:
        """New tensors to call it with."""
        return list(self.given().values())

    def given(self) -> dict[str, Tensor]:
        """The same by name."""
        made: dict[str, Tensor] = {}
        for i in self.inputs:
            made[i.name] = i.tensor(made)
        return made

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops that its statements are there for, in order."""
        return tuple(op for s in self.statements for op in s.ops)

    def script(
        self, modes: Sequence[str] | None = None, *, seed: int = 0, draws: bool = False, expected: str = ""
    ) -> str:
        """A file that runs the program on literal inputs in a fresh process, and exits with 1 if the modes part.

        seed      of `check`
        draws     whether to seed the random generator, with 0
        expected  what `check` is to find: a comment

        Ops that are the user's own are declared by running the user's file: see `declarations_for`.
        """
        given = [f"{i.name} = {i.text}" for i in self.inputs]
        options = [] if modes is None else [f"modes={list(modes)!r}"]
        options += [f"seed={seed}"] if seed else []
        call = f"compare.check({', '.join([self.name, *(i.name for i in self.inputs), *options])})"
        lines = [*(["torch.manual_seed(0)"] if draws else []), *given, ""]
        lines += [f"# {line}".rstrip() for line in expected.splitlines()]
        lines += [f"report = {call}", "print(report)", "raise SystemExit(0 if report.ok else 1)"]
        head = _HEAD.replace("import eager", "import compare\nimport eager")
        if any(i.layout is not None and not i.view for i in self.inputs):
            head = head.replace("from eager", "from compare.layouts.layout import placed\nfrom eager")
        if own := declarations_for(self.source):
            head = f"{head.rstrip()}\n\n{own.rstrip()}\n\n\n"
        return head + self.source + "\n\n" + "\n".join(lines) + "\n"

    def replace(self, **parts: Any) -> Program:
        """The program with others of its inputs, statements or results."""
        own = {"inputs": self.inputs, "statements": self.statements, "results": self.results}
        return Program(self.name, **{**own, **parts})

    def __reduce__(self) -> Any:
        return Program, (self.name, self.inputs, self.statements, self.results, self.pairs)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {len(self.statements)} statements>"


def _complete(inputs: Sequence[Input]) -> Iterator[Input]:
    """`inputs`, where one in the memory of another that is not there has memory of its own."""
    known: set[str] = set()
    for i in inputs:
        yield i._replace(view="") if i.reads() - known else i
        known.add(i.name)


def literal(value: Any) -> str:
    """An expression of a parameter of an op."""
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, np.dtype):
        return "graphc.ops.dtypes.bfloat16()" if value.kind == "V" else f"np.{value!r}"
    return repr(value)


def array_literal(array: np.ndarray) -> str:
    """An expression of the array, exact to the bit; in decimals where those say it all."""
    if array.dtype.kind == "V":
        return f"{array_literal(array.astype(np.float32))}.astype({literal(array.dtype)})"
    dtype = f"np.dtype('{array.dtype}')"
    values = array
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        values = np.array([float(str(v)) for v in array.ravel()]).reshape(array.shape)
    text = f"np.array({_decimals(values.tolist())}, '{array.dtype}')"
    if array.size and eval(text, {"np": np}).tobytes() == array.tobytes():
        return text
    return f"np.frombuffer(bytes.fromhex('{array.tobytes().hex()}'), {dtype}).reshape({array.shape}).copy()"


def _decimals(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_decimals, value))}]"
    return repr(value).replace("nan", "np.nan").replace("inf", "np.inf")
