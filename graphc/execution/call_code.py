"""The code of a call: straight-line Python, generated for one program, with every question answered that can be.

What a call does is decided by the program: which tensors it reads and where they are kept, which buffers XLA may take
over, which outputs become tensors, and where they go. Asked at each call, that takes longer than a small program.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from eager.core import tape
from eager.core.tensor import Tensor
from graphc.capture.generated import Names, indented
from graphc.capture.program import Program
from graphc.capture.sources import (
    Argument,
    Captured,
    Computed,
    DataOf,
    Draw,
    Given,
    GradOf,
    GradsOf,
    History,
    LeafFlag,
    Lifted,
    MemoryOf,
    PastOf,
    Source,
    Spare,
    ViewOf,
)  # fmt: skip
from graphc.capture.tree import Slot
from graphc.execution.arrays import arrays_of
from graphc.execution.plan import Plan, Services
from graphc.execution.steps import SHARED

DEEPEST = 20  # nest of containers that is written out as one expression


@final
class CallCode:
    """The code of the calls of one program.

    lines(given) statements, up to `return`, that use the arguments' tensors as t0, t1, ..., and `drawn`; `given` is
                 the expression of (args, kwargs)
    bind(lines)  the function that such lines, under a `def`, define
    names        of the objects in them
    arrays       the lines that depend on whose arrays they are
    loaded       the arrays of arguments and captured tensors are there already, under the names that `array` gives
                 them; and what `arrays.head` begins with; and `alone`: whether programs have made the data of all
                 tensors that are written, and no one else holds them
    """

    def __init__(self, plan: Plan, services: Services, loaded: bool = False):
        self._plan = plan
        self._services = services
        self._loaded = loaded
        self.names = Names()
        self.arrays = arrays_of(services, self.names)
        self._state = {  # outputs that are new values of captured tensors
            k for k, e in enumerate(plan.effects, len(plan.places))
            if isinstance(e.target, Captured) and e.history is History.NONE
        }  # fmt: skip
        given = {k for k, e in enumerate(plan.effects, len(plan.places)) if isinstance(e.target, GradsOf)}
        self._wrapped = [k for k in range(len(plan.outputs)) if k not in self._state | given]

    def function(self) -> Callable[..., Any]:
        """f(tensors, drawn, given): the result of a call, and its effects.

        tensors  among the arguments
        drawn    random numbers that were drawn already: see `Drawn`
        given    the arguments: (args, kwargs)
        """
        names = "".join(f"t{k}, " for k in range(self._plan.arguments))
        head = [f" {names}= tensors"] if names else []
        return self.bind("call", ["def call(tensors, drawn=None, given=((), {})):", *head, *self.lines()])

    def bind(self, name: str, lines: Sequence[str], known: Mapping[str, Any] | None = None) -> Callable[..., Any]:
        """The function `name` that `lines` define, which may use what is `known` by name."""
        return self.names.bind(name, lines, known, SHARED)

    def lines(self, given: str = "given") -> list[str]:
        """The statements of a call."""
        before = [" # checks", *self._fetched(), *self._asked(), *self._taken(), " # program"]
        if not self._changes:
            return [*before, *self.arrays.run(self._arrays()), *self._completed(given, " return ")]
        stopped, drawn = self.names.of(self._services.stopped), self._generators()
        generators = self.names.of(drawn) if drawn else ""
        rewound = f"rewind({generators}, marks)" if drawn else "pass"
        # An interrupt may come wherever a function is called: what has begun is finished, or nothing has happened.
        # Everything that is done to finish may be done twice
        return [
            " done, begun = [], False",
            *([f" marks = mark({generators})"] if drawn else []),
            " try:",
            *indented([*before, *self.arrays.run_into(self._arrays()), " out = done[0]"]),
            *indented(self._completed(given, " result = ")),
            "  if drawn is not None: drawn.clear()",  # which says that the call has ended
            "  return result",
            f" except {stopped}:",  # the call goes another way: as if this had not begun
            *([f"  try: {rewound}", "  except BaseException:", f"   {rewound}", "   raise"] if drawn else []),
            "  raise",
            " except BaseException as interrupt:",
            "  if not done:",
            *([f"   {rewound}"] if drawn else []),
            "   raise",
            "  try:",
            "   out = done[0]",
            *indented(indented(self._completed(given, " "))),
            "   if drawn is not None: drawn.clear()",
            f"  except {stopped}: {rewound}",
            "  finally: raise interrupt",
        ]

    @property
    def _changes(self) -> bool:
        """Whether a call changes anything: tensors, Python state, or a generator."""
        plan = self._plan
        return bool(plan.program.effects.tensors or plan.program.effects.state or plan.donated or self._generators())

    def _generators(self) -> list[Any]:
        """Those that a call draws from."""
        return list({id(s.generator): s.generator for s in self._plan.program.sources if isinstance(s, Draw)}.values())

    @property
    def _gathers(self) -> bool:
        """Whether it has to be seen to that state lies in its packs; else the guards have asked."""
        return self._plan.packs is not None and not self._loaded

    def _completed(self, given: str, last: str) -> list[str]:
        """All that follows the program: its results, and what it changes. `last`: what to do with the result."""
        return [
            " # results",
            *self.arrays.awaited(),
            *(line for k in self._wrapped for line in self._wrap(k)),
            *self._written(restored=True),
            *self.arrays.verified(),
            *self._history(),
            *self._written(restored=False),
            *([" if seen: put_back(seen)"] if self._gathers else []),
            *self._carried_out(),
            *(f" {self._tensor(target)} = None" for target in _cleared(self._plan.program)),
            *self._continued(),
            *self._result(given, last),
        ]

    def _tensor(self, source: Any) -> str:
        """The expression of the tensor behind a source."""
        match source:
            case Argument(position):
                return f"t{position}"
            case Captured(tensor):
                return self.names.of(tensor)
            case GradOf(of):
                return f"{self._tensor(of)}._g"
            case MemoryOf(of):
                return f"whole_memory({self._tensor(of)})"
            case Lifted():
                return f"{self.names.of(source.get)}()"
        raise AssertionError(source)

    @staticmethod
    def array(k: int, source: Source) -> str:
        """The name of the array of input number `k`."""
        return f"a{source.position}" if isinstance(source, Argument) else f"x{k}"

    def _arrays(self) -> list[str]:
        """The names of the arrays that XLA is given."""
        return [self.array(k, source) for k, source in enumerate(self._plan.program.sources)]

    def _fetched(self) -> list[str]:
        """The arrays of the inputs, in order. Random numbers are drawn here."""
        lines = [] if self._loaded else [*self.arrays.head]
        hosted, values = self._plan.hosted
        if values is not None:
            lines.append(f" {', '.join(f'n{k}' for k in hosted)}, = {self.names.of(values.numbers)}()")
        if self._gathers:
            assert self._plan.packs is not None
            settled, gather = self._plan.packs.settled(self.names.of), self.names.of(self._plan.packs.gather)
            lines.append(f" seen = () if {settled} else {gather}({self.names.of(self._services.executable)}.own)")
        draws = itertools.count()
        for x, source in zip(self._arrays(), self._plan.program.sources, strict=True):
            if isinstance(source, Draw):
                k = next(draws)
                lines.append(f" {x} = drawn[{k}] if drawn and {k} in drawn else {self.names.of(source.draw)}()")
            elif isinstance(source, Lifted) and source.kind is not None:
                lines.append(f" {x} = asarray({self.names.of(source.get)}(), {self.names.of(source.kind)})")
            elif isinstance(source, Spare):
                lines.append(f" {x} = {self.names.of(source.take)}()")
            elif not (self._loaded and isinstance(source, (Argument, Captured))):
                lines += self.arrays.fetched(x, self._tensor(source))
        return lines

    def _asked(self) -> list[str]:
        """Make the checks that need not wait for the program."""
        ids, sources = self._services.executable.graph.inputs, self._plan.program.sources
        arrays = dict(zip(ids, self._arrays(), strict=False))
        data = {
            id: f"{self._tensor(source)}._d"
            for id, source in zip(ids, sources, strict=False)
            if isinstance(source, (Argument, Captured)) and self.arrays.deferred
        }
        return self._plan.prechecks.lines(arrays, data, self.names, f"raise {self.names.of(self._services.refused)}")

    def _taken(self) -> list[str]:
        """Make the donated arrays ones that the program may overwrite."""
        lines = [" d = None"] if self._plan.donated else []  # the latest that was looked at is held by none
        for k in self._plan.donated:
            if isinstance(self._plan.program.sources[k], Spare):
                continue
            data = f"{self._tensor(self._plan.program.sources[k])}._d"
            own = self.names.of(self._services.executable)
            lines.append(f" if {self.arrays.taken(f'x{k}', data, self._loaded)}: x{k} = {own}.own(x{k})")
        return lines

    def _wrap(self, k: int) -> list[str]:
        return self.arrays.wrapped(k, *self._plan.outputs[k])

    def _history(self) -> list[str]:
        """What autograd has to know of results and arguments."""
        plan = self._plan
        lines = [f" {self._tensor(t.of)}.requires_grad_(True)" for t in _flags(plan.program, True)]
        if plan.live:
            results = ", ".join(f"w{k}" for k in plan.live)
            join = self.names.of(self._services.join)
            tensors = ", ".join(f"t{k}" for k in range(plan.arguments))
            outputs = self.arrays.outputs
            kept = "owner = " if plan.made else ""
            lines.append(f" {kept}{join}([{results}], [{', '.join(self._arrays())}], {outputs}, [{tensors}])")
        lines += [f" {self._tensor(t.of)}.requires_grad_(False)" for t in _flags(plan.program, False)]
        broken = self.names.of(self._services.broken)
        parents = "".join(f", {self._tensor(source)}._n" for source in plan.wrt)
        ended = self.names.of(self._services.ended)
        lines += [f" w{k}._n = new_node({ended}, ())" for k in plan.ended]
        return lines + [
            f" w{k}._n = new_node({broken}, {self.names.of((problem,))}{parents})" for k, problem in plan.broken.items()
        ]

    def _written(self, restored: bool) -> list[str]:
        """Give the captured tensors that the program writes their new values; `restored`: the old, if it has failed."""
        effects = enumerate(self._plan.effects, len(self._plan.places))
        owned = {self._plan.program.sources[k] for k in self._plan.donated}
        lines: list[str] = []
        for k, (target, *_) in effects:
            if k in self._state and (target in owned) is restored:
                lines += self._write(k, target)
            elif restored and isinstance(target, GradsOf) and target.spare is not None:
                lines.append(f" {self.names.of(target.spare.restored)}(out[{k}])")
        return lines

    def _write(self, k: int, target: Any) -> list[str]:
        read = target in self._plan.program.sources
        return self.arrays.written(k, self.names.of(target.tensor), read, *self._plan.outputs[k])

    def _carried_out(self) -> list[str]:
        """The other effects that have a value: on arguments, on `.grad`, and those that have a history."""
        lines: list[str] = []
        made: dict[int, str] = {}  # a new `.grad` may be that of several tensors
        for k, (target, _, history, fresh) in enumerate(self._plan.effects, len(self._plan.places)):
            if isinstance(target, PastOf) or k in self._state:
                continue
            if isinstance(target, GradsOf):
                lines.append(f" {self.names.of(target.give)}(out[{k}])")
            elif isinstance(target, GradOf):
                grad = f"{self._tensor(target.of)}._g"
                if fresh is None:
                    lines.append(f" overwrite({grad}, w{k}._d)")
                else:
                    value = made.setdefault(fresh, f"w{k}")
                    where = self._services.place(k)
                    on_mesh = where is not None and where.mesh is not None
                    tensor = self._tensor(target.of)
                    lines.append(f" {grad} = " + (f"laid_as({value}, {tensor})" if on_mesh else value))
            elif isinstance(target, DataOf):
                lines.append(f" {self._tensor(target.of)}._d = w{k}._d")
                if history is not History.NONE:
                    lines.append(f" write_recorded({self._tensor(target.of)}, w{k})")
            else:
                write = f"overwrite({{}}, w{k}._d)" if history is History.NONE else f"write_recorded({{}}, w{k})"
                lines.append(" " + write.format(self._tensor(target)))
        return lines

    def _continued(self) -> list[str]:
        """Gradients that go on into history from before the call."""
        past = [(k, e.target) for k, e in enumerate(self._plan.effects, len(self._plan.places))]
        lines: list[str] = []
        for keep in (True, False):
            chosen = [(self._tensor(t.of), f"w{k}") for k, t in past if isinstance(t, PastOf) and t.keep is keep]
            if chosen:
                tensors, grads = (", ".join(column) for column in zip(*chosen, strict=True))
                lines.append(f"  backward([{tensors}], [{grads}], retain_graph={keep})")
        return [" if not begun:", "  begun = True", *lines] if lines else []  # adds: not to be done twice

    def _result(self, given: str, last: str) -> list[str]:
        """The function's result, made of the program's, and what it puts into Python state."""
        program = self._plan.program
        lines: list[str] = []
        known: set[int] = set()
        for k, returned in enumerate(program.result.leaves):
            if k in self._plan.hosted[0]:
                lines.append(f" r{k} = n{k}")
                continue
            if isinstance(returned, ViewOf):
                name = f"view{returned.tensor}"
                if returned.tensor not in known:
                    known.add(returned.tensor)
                    lines.append(f" {name} = view({self._base(returned.base)}, {self.names.of(returned)})")
                    if program.result.histories[k] is History.LEAF:
                        lines.append(f" {name}.requires_grad_()")
                lines.append(f" r{k} = {name}")
                lines += self._classified(k)
                continue
            lines.append(f" r{k} = {self._base(returned)}")
            if program.result.histories[k] is History.LEAF:
                lines.append(f" r{k}.requires_grad_()")
            if k in program.result.numbers:
                lines[-1] += ".item()"
            lines += self._classified(k)
        for number, parent in self._plan.made.items():
            lines.append(f" owner[{tape.PARENTS + parent}] = r{program.result.made[number].result}._n")
        lines += [f" {self.names.of(register)}(r{k})" for k, register in program.result.watched]
        lines += [f" r{leaf.result}._g = r{leaf.grad}" for leaf in program.result.made if leaf.grad is not None]
        written = _expressions([*(value for _, value in program.effects.state), program.result.structure])
        if written is not None:
            *values, result = written
            changes = [self.names.of(change) for change, _ in program.effects.state]
            # all values first: one may be what another place has held so far
            lines += [f" s{k} = {value}" for k, value in enumerate(values)]
            lines += [f" {change}.carry_out(s{k}, {given})" for k, change in enumerate(changes)]
            return [*lines, f"{last}{result}"]
        leaves = ", ".join(f"r{k}" for k in range(len(program.result.leaves)))
        return [*lines, f"{last}assembled({self.names.of(program)}, [{leaves}], {given})"]

    def _classified(self, k: int) -> list[str]:
        """Make result number `k` a Parameter, say, if it is one."""
        kind = getattr(self._plan.program.result.leaves[k], "kind", Tensor)
        return [] if kind is Tensor else [f" r{k}.__class__ = {self.names.of(kind)}"]

    def _base(self, of: Computed | Given) -> str:
        return f"w{self._plan.places[of]}" if isinstance(of, Computed) else self._tensor(of.source)


def _cleared(program: Program) -> list[GradOf]:
    """What becomes None."""
    return [e.target for e in program.effects.tensors if e.id is None and isinstance(e.target, GradOf)]


def _flags(program: Program, flag: bool) -> list[LeafFlag]:
    return [e.target for e in program.effects.tensors if isinstance(e.target, LeafFlag) and e.target.flag is flag]


def _expressions(structures: Sequence[Any]) -> list[str] | None:
    """The expressions of nests of plain tuples, lists and dicts, each in one place; None for any other."""
    seen: set[int] = set()

    def written(tree: Any, depth: int) -> str:
        kind: Any = type(tree)
        if kind is Slot:
            return f"r{tree.index}"
        if tree is None or kind in (bool, int, str):
            return repr(tree)
        if kind not in (tuple, list, dict) or id(tree) in seen or depth > DEEPEST:
            raise LookupError
        if kind is not tuple:
            seen.add(id(tree))  # the same list in two places of the result is one list
        if kind is dict:
            if not all(type(key) is str for key in tree):
                raise LookupError
            return f"{{{', '.join(f'{key!r}: {written(value, depth + 1)}' for key, value in tree.items())}}}"
        inside = "".join(f"{written(value, depth + 1)}, " for value in tree)
        return f"({inside})" if kind is tuple else f"[{inside}]"

    try:
        return [written(structure, 0) for structure in structures]
    except LookupError:
        return None
