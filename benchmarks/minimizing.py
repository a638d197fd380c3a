"""How small and how fast `compare.minimize` is: planted faults, in random programs and in functions with control flow.

    python -m benchmarks.minimizing [--only NAME] [--json]

Each case plants a fault, finds a program that shows it, minimizes the program, and runs the script in a fresh process
that has the same fault. Printed: ops and statements before and after, seconds, and whether the fresh process says the
same. The median of ops, the longest time and the share of scripts that reproduce come last.
"""

from __future__ import annotations

import argparse
import importlib
import json
import runpy
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import compare
import eager as torch
import graphc
from compare.cases.case import Case
from compare.fuzzing import Program, generate
from compare.fuzzing.design import chain_of, vocabulary
from compare.minimizing import MinimizeError, minimize_program
from compare.selftest.planting import attribute, declared, entry, with_rule
from graphc.ir import INPUT, Graph
from graphc.ir.structure import ITEM, every_node
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS
from graphc.rewrite import EXACT, RewriteRule

ROOT = Path(__file__).parents[1]
SIZE = 9  # ops of a random program, which makes some 15 to 40 statements
Plant = Callable[[], AbstractContextManager[None]]


def lowering(name: str, form: Callable[..., Any]) -> Plant:
    return lambda: entry(OVERRIDES, name, form)


def gradient(name: str, argument: str, rule: Callable[..., Any]) -> Plant:
    op = OPS[name]
    return lambda: declared(op, vjp=with_rule(op, argument, op._vjp(argument, rule)))


def rewriting(left: Callable[..., Any], right: Callable[..., Any]) -> Plant:
    pipeline = importlib.import_module("graphc.passes.pipeline")  # the facade has a function of that name
    rule = RewriteRule("planted_rule", EXACT, left, right)
    return lambda: attribute(pipeline, "ALL", (*pipeline.ALL, rule))


def kernel_of_graphs(name: str, kernel: Callable[..., Any]) -> Plant:
    """The kernel that graphs on NumPy use; eager's code is made of the sound one before."""

    @contextmanager
    def plant() -> Iterator[None]:
        op, sound = OPS[name], OPS[name].kernel
        for dtype in (torch.float32, torch.float64):
            getattr(torch, name)(torch.ones(2, dtype=dtype))
        op.kernel = kernel
        try:
            yield
        finally:
            op.kernel = sound

    return plant


def tensors(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    return tuple(torch.from_numpy(rng.uniform(0.2, 1.5, s).astype(np.float32)).requires_grad_() for s in shapes)


# --- functions of a user's


def in_branch(x: Any) -> Any:
    h = torch.tanh(x) * 2
    y = graphc.cond(h.sum() > 0, lambda a: torch.expm1(a) + h.mean(), lambda a: a * a, h)
    return torch.sin(y).sum(), y.softmax(1)


def in_scan(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = torch.tanh(carry + row)
        return carry, torch.expm1(carry) * row

    last, rows = graphc.scan(step, x[0] * 0, torch.sigmoid(x))
    return last.sum() + (rows**2).mean()


def in_while(x: Any) -> Any:
    y = graphc.while_loop(lambda a: a.abs().sum() > 0.5, lambda a: torch.expm1(a * 0.5) * 0.5, torch.sin(x))
    return (y * x).sum()


def in_for(x: Any) -> Any:
    y = graphc.fori_loop(0, 3, lambda i, a: torch.tanh(torch.expm1(a) + 0.1 * i), x)
    return torch.exp(y).mean()


def in_switch(x: Any) -> Any:
    k = (x.sum() > 0).long() + 1
    return graphc.switch(k, (lambda a: a, lambda a: a + 1, lambda a: torch.expm1(a) * 2), torch.cos(x)).sum()


def in_map(x: Any) -> Any:
    return graphc.map(lambda row: torch.expm1(row).sum() * row, x @ x.mT).mean(0)


def written(x: Any) -> Any:
    h = x.detach() * 2
    h[0] = 0.5
    h.add_(torch.expm1(h))
    h[1:].mul_(0.5)
    return h.sum(0), torch.tanh(h)


def written_argument(x: Any) -> Any:
    y = torch.sin(x) + 1
    x.mul_(0.5).add_(torch.expm1(y))
    return y.mean()


def drawn(x: Any) -> Any:
    h = torch.nn.functional.dropout(x, 0.25)
    return (torch.expm1(h) * torch.rand_like(h)).sum()


def decided(x: Any) -> Any:
    y = torch.sin(x)
    if y.sum() > 0:
        y = torch.expm1(y) - x
    for _ in range(3):
        y = y * 0.5 + 1
    with torch.no_grad():
        z = y * 3
    return y.mean() + z.sum()


def accumulated(x: Any) -> Any:
    loss = (torch.expm1(x) ** 2).mean()
    loss.backward()
    return loss.detach()


def raising(x: Any) -> Any:
    y = torch.sin(x) * 2 + 1
    return torch.cos(torch.expm1(y)).sum() + y.mean()


def network(x: Any, w: Any) -> Any:
    h = torch.tanh(0.2 * (x @ w))
    y = torch.expm1(h) * torch.sin(h) + x.mean()
    return (y.softmax(1) ** 2).sum(), h


def differences(x: Any, y: Any) -> Any:
    a = torch.exp(x * 2.0 - y.tanh()) + y
    return torch.sin(a).sum() - a.mean()


def broken(x: Any) -> Any:
    raise NotImplementedError("planted")


EXPM1 = lowering("expm1", lambda x: 1.001 * jnp.expm1(x))
FUNCTIONS: tuple[tuple[Callable[..., Any], Plant, str, tuple[Any, ...]], ...] = (
    *((f, EXPM1, "compiled", tensors((3, 4))) for f in (in_branch, in_scan, in_while, in_for, in_switch, drawn, decided,
      accumulated)),
    (in_map, EXPM1, "compiled", tensors((3, 3))),
    (written, EXPM1, "compiled", tensors((3, 4))),
    (written_argument, EXPM1, "compiled", tuple(t.detach() for t in tensors((3, 4)))),
    (raising, lowering("expm1", broken), "compiled", tensors((3, 4))),
    (network, EXPM1, "compiled", tensors((4, 5), (5, 3))),
    (differences, rewriting(lambda F, x, y: x - y, lambda F, x, y: x + y), "passes", tensors((3, 4), (3, 4))),
    (differences, rewriting(lambda F, x: F.exp(x), lambda F, x: F.expm1(x)), "passes", tensors((3, 4), (3, 4))),
    (network, gradient("tanh", "input", lambda F, g, r: g * (1 - r)), "jax.grad", tensors((4, 5), (5, 3))),
    (in_scan, gradient("sigmoid", "input", lambda F, g, r: g * r), "jax.grad", tensors((3, 4))),
)  # fmt: skip
# the op that a random program must have, the fault, the mode that shows it
RANDOM: tuple[tuple[str, Plant, str], ...] = (
    ("expm1", EXPM1, "compiled"),
    ("cos", lowering("cos", lambda x: jnp.sin(x + 1.5)), "compiled"),
    ("exp", lowering("exp", lambda x: jnp.exp(x.astype(np.float32))), "compiled"),
    ("erf", lowering("erf", lambda x: jnp.tanh(x)), "compiled"),
    ("log2", lowering("log2", broken), "compiled"),
    ("mean", lowering("mean", lambda x, axis, keepdims: 1.001 * jnp.mean(x, axis=axis, keepdims=keepdims)), "compiled"),
    ("cumsum", lowering("cumsum", lambda x, axis: jnp.cumsum(x, axis=axis) - x), "compiled"),
    ("amax", lowering("amax", lambda x, axis, keepdims: jnp.min(x, axis=axis, keepdims=keepdims)), "compiled"),
    ("softmax", lowering("softmax", lambda x, axis: 1.001 * jax.nn.softmax(x, axis)), "compiled"),
    ("matmul", lowering("matmul", lambda x, y: jnp.matmul(x, y) + 0.01), "compiled"),
    ("atan2", lowering("atan2", lambda y, x: jnp.arctan2(x, y)), "compiled"),
    ("flip", lowering("flip", lambda x, axis: x), "compiled"),
    ("sin", gradient("sin", "input", lambda F, g, input: g * F.cos(input) * 1.001), "jax.grad"),
    ("log1p", gradient("log1p", "input", lambda F, g, input: g / (2 + input)), "jax.grad"),
    ("sigmoid", gradient("sigmoid", "input", lambda F, g, r: g * r), "jax.grad"),
    ("tanh", gradient("tanh", "input", lambda F, g, r: g * (1 + r * r)), "jax.grad"),
    ("sub", rewriting(lambda F, x, y: x - y, lambda F, x, y: x + y), "passes"),
    ("exp", rewriting(lambda F, x: F.exp(x), lambda F, x: F.expm1(x)), "passes"),
    ("abs", rewriting(lambda F, x: F.abs(x), lambda F, x: x), "passes"),
    ("tan", kernel_of_graphs("tan", lambda x: np.tan(x) * x.dtype.type(1.001)), "graph"),
)


class Planted(NamedTuple):
    """A case: how to plant its fault, and how to get a small program from a large one while it is there."""

    plant: Plant
    minimized: Callable[[], tuple[Any, int]]


@dataclass(frozen=True)
class Row:
    """What has come of a case. ops: operations of the captured graph, those of graphs inside it included."""

    name: str
    before: int
    ops: int
    statements: int
    checks: int
    seconds: float
    reproduced: bool
    note: str = ""


def ops_of(graph: Graph) -> int:
    """The operations of a graph, without what only names constants and results."""
    plain = (INPUT, ITEM, OPS["constant"])
    return sum(node.op not in plain for node in every_node(graph))


def _graph(fn: Callable[..., Any], args: Any) -> int:
    program = Case(fn, tuple(args), {}, 0).program
    return 0 if program is None else ops_of(program.graph)


def of_function(fn: Callable[..., Any], mode: str, args: tuple[Any, ...]) -> tuple[Any, int]:
    return compare.minimize(fn, *args, modes=[mode]), _graph(fn, args)


def of_random(op: str, mode: str) -> tuple[Any, int]:
    """The first random program with the op, of which the mode shows a bug."""
    for program in _programs(op):
        report = compare.check(program.function, *program.arguments(), modes=[mode])
        bug = max(report.bugs, key=lambda f: f.verdict, default=None)
        if bug is not None:
            return minimize_program(program, [mode], bug), _graph(program.function, program.arguments())
    raise MinimizeError(f"no random program shows it: {op}")


def _programs(op: str) -> Iterator[Program]:
    names = [known.name for known in vocabulary()]
    for seed in range(3000):
        if op in chain_of(seed, SIZE, names) and op in (program := generate(seed, SIZE)).ops:
            yield program


def cases() -> dict[str, Planted]:
    """All cases by name."""
    found = {
        f"{fn.__name__} {k}": Planted(plant, lambda fn=fn, mode=mode, args=args: of_function(fn, mode, args))
        for k, (fn, plant, mode, args) in enumerate(FUNCTIONS)
    }
    for k, (op, plant, mode) in enumerate(RANDOM):
        found[f"random {op} {k}"] = Planted(plant, lambda op=op, mode=mode: of_random(op, mode))
    return found


def measure(name: str) -> tuple[Row, str]:
    """Minimize a case, and run its script in a fresh process; (what came of it, the script)."""
    planted = cases()[name]
    with planted.plant():
        try:
            found, before = planted.minimized()
        except MinimizeError as error:
            return Row(name, 0, 0, 0, 0, 0.0, False, str(error)), ""
        after = _graph(found.program.function, found.program.arguments())
    row = Row(name, before, after, len(found.program.statements), found.checks, found.seconds, False)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(found.script)
        command = [sys.executable, "-m", "benchmarks.minimizing", "--replay", name, str(script)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    culprit = found.bug.culprit
    named = () if culprit is None else (culprit.part, culprit.op, culprit.rule, culprit.pass_name)
    if done.returncode == 1 and all(part in done.stdout for part in (*named, str(found.bug.verdict))):
        return replace(row, reproduced=True), found.script
    return replace(row, note=(done.stdout + done.stderr)[-400:]), found.script


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="cases whose name has this in it")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scripts", help="a folder for the scripts")
    parser.add_argument("--replay", nargs=2, metavar=("CASE", "SCRIPT"), help="run a script while the fault is there")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.replay is not None:
        with cases()[arguments.replay[0]].plant():
            runpy.run_path(arguments.replay[1], run_name="__main__")
        return
    rows: list[Row] = []
    for name in cases():
        if arguments.only is None or arguments.only in name:
            row, script = measure(name)
            rows.append(row)
            if arguments.scripts is not None:
                Path(arguments.scripts, f"{name.replace(' ', '_')}.py").write_text(script)
            if not arguments.json:
                said = "reproduced" if row.reproduced else f"NOT reproduced {row.note}"
                print(f"{name:24} {row.before:4} ops -> {row.ops:2} in {row.statements} statements, "
                      f"{row.checks:3} checks, {row.seconds:5.1f} s, {said}", flush=True)  # fmt: skip
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        share = sum(row.reproduced for row in rows) / len(rows)
        print(f"{len(rows)} cases: median {statistics.median(r.ops for r in rows):g} ops, "
              f"longest {max(r.seconds for r in rows):.1f} s, reproduced {share:.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
