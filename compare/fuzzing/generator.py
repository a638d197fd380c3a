"""Random well-typed programs: each statement is run as soon as it is written, and kept if it gives something."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, final

import numpy as np

from compare.declared.operations import samples_of
from compare.fuzzing import input_memory
from compare.fuzzing.design import chain_of, vocabulary
from compare.fuzzing.forms import FORMS
from compare.fuzzing.program import Input, Program, Statement, literal, names
from compare.fuzzing.values import fits, fitting
from eager import autograd
from eager.core.tensor import Tensor
from eager.rng.sampling import default_generator
from graphc.ops import Op, Trait
from graphc.ops.dtypes import FLOAT16, FLOAT32, FLOAT64, bfloat16, is_inexact, kind
from graphc.ops.samples import Bools, Complexes, Definite, Floats, Ints, Regular, Sample

ATTEMPTS = 6  # at a statement that will not run, before another op is tried
SIZE = 8  # ops of a program, as far as they can be called
LARGEST_ARRAY = 4096  # elements
USUAL = (-8.0, 8.0)  # what ops that declare no domain are given
GRAD, FORM, FRESH, LOOSE = 0.75, 0.3, 0.15, 0.3  # how often
FLOATS = {FLOAT32: 0.79, FLOAT64: 0.15, FLOAT16: 0.03, bfloat16(): 0.03}  # how often inputs are of these


class Value(NamedTuple):
    """A variable of the program that is being made, and the op that its value comes from ("" for an input)."""

    name: str
    tensor: Tensor
    origin: str


@final
class Draft:
    """A program under construction.

    pool   the variables so far, with their values
    dtype  of its floating-point inputs
    pairs  (op that has made a value, op that has taken it)
    """

    def __init__(self, rng: np.random.Generator, dtype: np.dtype):
        self.rng = rng
        self.dtype = dtype
        self.pool: list[Value] = []
        self.inputs: list[Input] = []
        self.statements: list[Statement] = []
        self.pairs: list[tuple[str, str]] = []
        self._scope = names()
        self._count = 0
        self._memory = rng.spawn(1)[0]  # of its own: programs are the same wherever their inputs lie

    def fresh(self) -> str:
        """A new name."""
        self._count += 1
        return f"v{self._count}"

    def input(self, array: np.ndarray, wanted: Callable[[Tensor], bool], repeats: bool) -> Value:
        """A new argument, which may have elements that `repeats` allows to be one; or one in the memory of another, if
        that is as `wanted`.
        """
        grad = is_inexact(array.dtype) and self.rng.random() < GRAD
        made = self._shared(array, wanted) or Input(
            "", array, False, input_memory.layout(self._memory, array.shape, repeats)
        )
        if made.layout is not None:
            made = made._replace(array=np.array(made.layout.placed(array)))  # where elements repeat, other ones
        made = made._replace(name=f"x{len(self.inputs)}", requires_grad=grad)
        self.inputs.append(made)
        value = Value(made.name, made.tensor(self._scope), "")
        self._scope[made.name] = value.tensor
        self.pool.append(value)
        return value

    def _shared(self, array: np.ndarray, wanted: Callable[[Tensor], bool]) -> Input | None:
        """An argument like `array` in the memory of another; None most of the time."""
        plain = [i for i in self.inputs if i.array.dtype == array.dtype and i.layout is None and not i.view]
        if not plain or self._memory.random() >= input_memory.SHARED:
            return None
        other = plain[self._memory.integers(len(plain))]
        text = input_memory.view(self._memory, other.name, other.array.size, array.shape)
        if not text:
            return None
        shown = Input("", array, False, view=text).tensor(self._scope)
        return Input("", np.array(shown._array()), False, view=text) if wanted(shown) else None

    def drawn(self, spec: Any, interval: tuple[float, float]) -> Value:
        """A new argument that is what `spec` asks for."""
        array = np.asarray(Sample(spec).arrays(self.rng, interval, self.dtype)[0])
        if isinstance(spec, Floats) and interval == USUAL:
            array = input_memory.special(self._memory, array)
        repeats = not isinstance(spec, (Definite, Regular))  # equal rows make a matrix singular
        return self.input(array, lambda t: fits(t, spec, interval, self.dtype), repeats)

    def pick(self, wanted: Any = None, maker: str = "") -> Value | None:
        """One of the variables for which `wanted(tensor)` is true; if there are, of those that the op `maker` made."""
        found = [v for v in self.pool if wanted is None or wanted(v.tensor)]
        found = [v for v in found if v.origin == maker] or found
        if not found:
            return None
        # the latest more often: long chains, and every value is used
        weights = np.arange(1.0, len(found) + 1)
        return found[self.rng.choice(len(found), p=weights / weights.sum())]

    def undoable(self) -> Callable[[], None]:
        """A function that takes back what is added from now on."""
        count, pool, inputs, scope = len(self.statements), list(self.pool), list(self.inputs), dict(self._scope)

        def undo() -> None:
            del self.statements[count:]
            self.pool, self.inputs, self._scope = pool, inputs, scope

        return undo

    def run(self, statement: Statement, origin: str) -> bool:
        """Add `statement` if it runs, and what it makes are tensors of reasonable size."""
        scope = dict(self._scope)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(statement.text, scope)
        except Exception:  # whatever the op says about operands that do not fit: another statement is tried
            return False
        made = [scope[name] for name in statement.makes]
        if not all(isinstance(t, Tensor) and t._array().size <= LARGEST_ARRAY for t in made):
            return False
        self._scope = scope
        self.statements.append(statement)
        self.pool += [Value(name, t, origin) for name, t in zip(statement.makes, made, strict=True)]
        return True

    def finished(self, name: str) -> Program | None:
        """The program, which returns what nothing else has used; None if its gradient cannot be taken."""
        used = {r for s in self.statements for r in s.reads}
        made = [n for s in self.statements for n in s.makes]
        results = [n for n in made if n not in used] or made[-1:]
        if not results:
            return None
        read = used | set(results)
        program = Program(name, [i for i in self.inputs if i.name in read], self.statements, results, self.pairs)
        return program if runs(program) else None


def runs(program: Program) -> bool:
    """Whether the program and its gradients run."""
    arguments = program.arguments()
    with warnings.catch_warnings(), default_generator.forked():
        warnings.simplefilter("ignore")
        try:
            results = [r for r in program.function(*arguments) if r.requires_grad]
            wrt = [a for a in arguments if a.requires_grad]
            if results and wrt:
                autograd.grad(results, wrt, [r.detach() for r in results], allow_unused=True)
        except Exception:  # an in-place write of what a gradient needs, an op that has none: eager says so
            return False
    return True


def generate(seed: int, size: int = SIZE, without: Collection[str] = ()) -> Program:
    """The random program number `seed`, of `size` ops besides what fits values together; see `design.chain_of`.

    without   names of ops to leave out

    >>> program = generate(7)
    >>> len(program.function(*program.arguments())) == len(program.results)
    True
    """
    ops = {op.name: op for op in vocabulary() if op.name not in without}
    chain = [ops[name] for name in chain_of(seed, size, list(ops))]
    for attempt in range(100):
        rng = np.random.default_rng((seed, attempt))
        draft = Draft(rng, list(FLOATS)[rng.choice(len(FLOATS), p=list(FLOATS.values()))])
        maker = ""
        with default_generator.forked():
            for op in chain:
                while draft.pool and rng.random() < FORM:
                    FORMS[rng.integers(len(FORMS))](draft)
                if _add_op(draft, op, maker):
                    maker = op.name
        program = draft.finished(f"program{seed}")
        if program is not None:
            return program
    raise RuntimeError(f"no program for seed {seed} after 100 attempts")


def _add_op(draft: Draft, op: Op, maker: str) -> bool:
    """Call `op` in some way, on a value of the op `maker` if that can be."""
    samples = list(samples_of(op))
    # what rules and gradients are written with relies on its callers for operands that fit together
    any_shapes = op.pointwise and not op.traits & Trait.SURROGATE
    for _ in range(ATTEMPTS):
        sample = samples[draft.rng.integers(len(samples))]
        loose = any_shapes and draft.rng.random() < LOOSE
        if _call(draft, op, sample, loose, maker) or (loose and _call(draft, op, sample, False, maker)):
            return True
    return False


def _call(draft: Draft, op: Op, sample: Sample, loose: bool, maker: str) -> bool:
    """Call `op` as `sample` does; `loose`: on operands of any shapes, if it takes them."""
    undo = draft.undoable()
    operands: list[Value] = []
    chosen = draft.rng.integers(max(len(sample.inputs), 1))  # the operand that `maker` is to have made
    for k, spec in enumerate(sample.inputs):
        operands.append(_operand(draft, spec, _interval(op, k), loose, maker if k == chosen else ""))
    params = "".join(f", {name}={literal(value)}" for name, value in sample.params.items())
    call = f"E.{op.name}({', '.join(v.name for v in operands)}{params})".replace("(, ", "(")
    made = tuple(draft.fresh() for _ in range(len(op.results) or 1))
    statement = Statement(f"{', '.join(made)} = {call}", made, tuple(v.name for v in operands), (op.name,))
    if draft.run(statement, op.name):
        draft.pairs += [(v.origin, op.name) for v in operands if v.origin]
        return True
    undo()
    return False


def _operand(draft: Draft, spec: Any, interval: tuple[float, float], loose: bool, maker: str) -> Value:
    rng, dtype = draft.rng, draft.dtype
    if draft.pool and (maker or rng.random() >= FRESH):
        if loose and isinstance(spec, (Floats, Ints, Bools, Complexes)):
            wanted = {Ints: "i", Bools: "b", Complexes: "c"}.get(type(spec), "f")
            alike = draft.pick(lambda t: kind(t._array().dtype) == wanted, maker)
            if alike is not None and maker in ("", alike.origin):
                return alike
        ready = draft.pick(lambda t: fits(t, spec, interval, dtype), maker)
        other = draft.pick(lambda t: t.numel() > 0, maker)
        if ready is not None and (other is None or maker in ("", ready.origin)):
            return ready
        if other is not None:
            text = fitting(other.name, other.tensor, spec, interval, dtype)
            name = draft.fresh()
            if text is not None and draft.run(Statement(f"{name} = {text}", (name,), (other.name,)), other.origin):
                return draft.pool[-1]
    return draft.drawn(spec, interval)


def _interval(op: Op, k: int) -> tuple[float, float]:
    if op.domain is None:
        return USUAL
    first = op.domain[0]
    return op.domain[min(k, len(op.domain) - 1)] if isinstance(first, tuple) else op.domain
