"""The table of public functions in docs/ops.md, derived from the samples: what each is made of, and what holds of it.

python -m tests.samples.table > docs/ops.md
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import NamedTuple

import eager
from graphc.capture.trace import capture
from graphc.errors import CaptureError
from graphc.ops.spec import OPS
from tests.samples import digest, names, recorder
from tests.samples.deviations import BY_VALUE, COMPILED, DEVIATIONS, GRADIENTS
from tests.samples.operands import make
from tests.samples.recorder import Sample

HEAD = """# Ops

This table has every function of PyTorch that `tests/samples` tries in both modes. `python -m tests.samples.table`
writes it from the samples. A *primitive* is an op of the registry; other functions are made of primitives.

| column | meaning |
|---|---|
| made of | the primitives in a graph of the function; *itself* if it is one |
| gradient | yes, or no (PyTorch has none either) |
| compiled | yes, or why not |
| known deviations | how the function differs from PyTorch {version} by decision |

There are {primitives} primitives, of which {differentiable} have gradient rules; {defined} more ops are defined by
primitives.

| name | made of | gradient | compiled | known deviations |
|---|---|---|---|---|
"""
NAMES = """
## Names

These are the public names of PyTorch {version} (`dir` of the module or class, without submodules), and why some are
missing here. What is here works eagerly and in compiled functions, except for what the table above says.

"""
PYTORCH = "2.13"


class Row(NamedTuple):
    """What is known of a name."""

    primitives: set[str]
    gradient: set[str]
    compiled: set[str]
    deviations: dict[str, None]  # in the order of their tables


def public_name(sample: Sample) -> str:
    """The name as in PyTorch: `nn.functional.pad`, `linalg.inv`, `Tensor.view`."""
    if f"F.{sample.name}(" in sample.call:
        return f"nn.functional.{sample.name}"
    return sample.name if f"t.{sample.name}(" in sample.call else f"Tensor.{sample.name}"


def primitives_of(sample: Sample) -> set[str]:
    """The ops in the graph of a sample's call. Raises CaptureError if the call cannot be captured."""
    function = digest.expression(sample.call)
    names = [o.name for o in sample.operands]
    operands = tuple(make(eager, o) for o in sample.operands)
    program = capture(lambda *tensors: function(eager, **dict(zip(names, tensors, strict=True))), operands, {})
    return {node.op.name for node in program.graph.operations()} - {"cast", "stop_gradient"}


def rows() -> dict[str, Row]:
    found: dict[str, Row] = defaultdict(lambda: Row(set(), set(), set(), {}))
    seen: set[tuple[str, str]] = set()
    for sample in (s for family in recorder.FAMILIES for s in recorder.recorded(family)):
        row = found[public_name(sample)]
        row.deviations.update(dict.fromkeys(reasons(sample, (*DEVIATIONS, *GRADIENTS))))
        if any(text.startswith("! ") for text in sample.recorded):
            continue
        kind = "float" if any(o.notation.startswith(("f", "bf", "c")) for o in sample.operands) else "other"
        if (sample.call, kind) in seen:
            continue
        seen.add((sample.call, kind))
        tensors = {o.name: make(eager, o) for o in sample.operands}
        _, outs, leaves = digest.describe(digest.expression(sample.call)(eager, **tensors), tensors)
        if outs and leaves and "grad !" not in " ".join(sample.recorded):
            row.gradient.add("yes")
        try:
            row.primitives.update(primitives_of(sample))
            row.compiled.add("yes")
        except CaptureError:
            by_value = reasons(sample, BY_VALUE)
            row.compiled.add(f"by value: {by_value[0]}" if by_value else f"refused: {reasons(sample, COMPILED)[0]}")
    return found


def reasons(sample: Sample, table: tuple[tuple[str, str, str], ...]) -> list[str]:
    """What a table of deviations says of a sample."""
    return [why for call, part, why in table if sample.call.startswith(call) and part in sample.told]


def main() -> None:
    warnings.simplefilter("ignore")
    differentiable = sum(1 for op in OPS.values() if op.vjp)
    defined = sum(1 for op in OPS.values() if op.definition is not None)
    print(
        HEAD.format(version=PYTORCH, primitives=len(OPS) - defined, differentiable=differentiable, defined=defined),
        end="",
    )
    for name, row in sorted(rows().items(), key=lambda item: (item[0].count("."), item[0])):
        own = name.rpartition(".")[2]
        made = (
            "itself"
            if row.primitives == {own}
            else ", ".join(sorted(row.primitives)) or ("constants" if "yes" in row.compiled else "")
        )
        cells = (f"`{name}`", made, *("; ".join(sorted(c)) or "no" for c in (row.gradient, row.compiled)))
        print(f"| {' | '.join(cells)} | {'; '.join(row.deviations)} |")
    print(NAMES.format(version=PYTORCH) + names.table(), end="")


if __name__ == "__main__":
    main()
