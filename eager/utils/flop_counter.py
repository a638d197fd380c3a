"""`torch.utils.flop_counter`: how many operations the products of a program take, forward and backward, by module."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from typing import Any

from eager.core import tape
from eager.core.tensor import Tensor
from eager.nn.module import Module
from eager.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from eager.profiling.events import FunctionEvent
from eager.profiling.instruments import recording
from eager.profiling.recorder import Recorder
from graphc.ops import Op, Trait

__all__ = ["FlopCounterMode"]

KINDS = {"UnsafeView": "bmm", "Squeeze": "mv"}  # what is behind nodes that PyTorch calls by what comes last
IN_BACKWARD = {"addmm": "mm", "convolution": "convolution_backward"}
UNITS = ("", "K", "M", "B", "T")
OWN_COUNTS = "FlopCounterMode(custom_mapping=...): an op says what it takes itself, graphc.ops.op(..., flops=...)"


class FlopCounterMode:
    """Count a + b * c as two, of matrix products and convolutions. As `torch.utils.flop_counter.FlopCounterMode`.

    depth    how deep the table goes into modules
    display  whether the table is printed at the end of the block

    Each op declares what it takes; a backward node takes that for each factor whose gradient is wanted. Not seen are
    ops of compiled programs, and some of a backward pass with `create_graph=True`. RuntimeError while a profiler runs,
    NotImplementedError for `custom_mapping`.

    >>> import eager as torch
    >>> with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     loss = torch.nn.Linear(4, 8)(torch.ones(2, 4)).sum()
    ...     loss.backward()
    >>> counter.get_total_flops(), counter.get_flop_counts()["Linear"]
    (256, {'aten.addmm': 128, 'aten.mm': 128})
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None):
        if custom_mapping:
            raise NotImplementedError(OWN_COUNTS)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[str, int]] = {}

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        modules = _Modules()
        self._stack = ExitStack()
        self._stack.enter_context(register_module_forward_pre_hook(modules.enter))
        self._stack.enter_context(register_module_forward_hook(modules.leave, always_call=True))
        self._stack.enter_context(recording(_Counter(self.flop_counts, modules)))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """All operations of the block."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Path of a module, or "Global" -> {name of an op: its operations}."""
        return {path: dict(counts) for path, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table, of modules down to `depth`."""
        depth, total = self.depth if depth is None else depth, self.get_total_flops()
        # one module with all that was counted says as much as the whole
        whole = [p for p, c in self.flop_counts.items() if p != "Global" and sum(c.values()) == total]
        paths = sorted(p for p in self.flop_counts if p != "Global" and p.count(".") < depth)
        if not whole or not paths:
            paths = ["Global", *paths]
        unit = max(0, min(len(UNITS) - 1, (len(str(total)) - 2) // 3))
        rows = [("Module", "FLOP", "% Total")]
        for path in paths:
            counts = self.flop_counts.get(path, {})
            for name, n in ((path, sum(counts.values())), *((f"- {op}", n) for op, n in counts.items())):
                share = f"{n / total:.2%}" if total else "0%"
                rows.append((name, f"{n / 1000**unit:.3f}{UNITS[unit]}" if unit else str(n), share))
        widths = [max(len(column[0]) + 2, *map(len, column)) for column in zip(*rows, strict=True)]
        aligned = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        return "\n".join([aligned[0], "  ".join("-" * width for width in widths), *aligned[1:]])


class _Modules:
    """The paths of the modules that are being called."""

    def __init__(self) -> None:
        self.path: list[str] = ["Global"]
        self._names: dict[int, tuple[Module, str]] = {}  # keeps them alive, so that ids stay theirs

    def enter(self, module: Module, args: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, child in module.named_modules():
                self._names[id(child)] = child, f"{root}.{name}" if name else root
        self.path.append(self._names[id(module)][1])

    def leave(self, module: Module, args: Any, result: Any) -> None:
        self.path.pop()


class _Counter(Recorder):
    """Counts ops that contract when they end, and when backward visits the nodes that they have made."""

    def __init__(self, counts: dict[str, dict[str, int]], modules: _Modules):
        super().__init__(flops=True)
        self._counts, self._modules = counts, modules
        self._made: dict[int, tuple[Any, str, int, list[str]]] = {}  # keeps nodes alive, so that ids stay theirs
        self._visited: dict[int, Any] = {}  # event -> the node

    def counted(self, op: Op, shapes: list[tuple[int, ...]], flops: int, result: Tensor) -> None:
        if op.flops is not None and (op.lifting is not None or op.traits & Trait.CONTRACTS):
            name = (op.node_name if op.naming is None else op.naming(shapes)).partition("Backward")[0]
            kind = KINDS.get(name, name.lower())
            self._add(kind, flops, self._modules.path)
            if result._n is not None:
                self._made[id(result._n)] = result._n, kind, flops, list(self._modules.path)

    def open_node(self, name: str, node: Any) -> FunctionEvent:
        event = super().open_node(name, node)
        self._visited[event.id] = node
        return event

    def close(self, event: FunctionEvent, result: Any = None, only_tensors: bool = False) -> None:
        super().close(event, result, only_tensors)
        made = self._made.get(id(self._visited.pop(event.id, None)))
        # with create_graph=True a node's products can be ops themselves, which have been counted
        if made is not None and not any(child.flops for child in event.cpu_children):
            node, kind, flops, path = made
            wanted = sum(parent is not None for parent in node[tape.PARENTS :][-2:])  # the factors come last
            if wanted:
                self._add(IN_BACKWARD.get(kind, kind), flops * wanted, path)

    def _add(self, kind: str, flops: int, path: list[str]) -> None:
        for name in dict.fromkeys(path):
            self._counts[name][f"aten.{kind}"] += flops
