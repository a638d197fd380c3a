"""What the site consists of: its pages in order. Paths are those of the repository, or of what the build generates."""

from __future__ import annotations

TUTORIALS = ["first-model", "reading-a-graph", "linear-algebra", "loops-and-scan", "numerical-bugs", "from-pytorch"]

GUIDES = {
    "Write programs": [
        "programs",
        "running",
        "checkpoints",
        "amp",
        "fx",
        "distributions",
        "sparse",
        "devices",
        "dtensor",
        "distributed",
    ],
    "Compile": ["compile", "graphs", "facts", "optimizing", "memory", "large-steps", "sharding"],
    "Compare": ["compare", "verdicts", "benchmarks", "findings"],
    "Look up": ["ops", "extending"],
}
INTERNALS = [
    "eager", "values", "capture", "control-flow", "programs", "calls", "graphs", "algebra", "explaining", "audit",
    "memory", "compare", "guarantees", "tests",
]  # fmt: skip

GALLERY = ["report", "explanation", "graph", "charts", "memory"]

# public modules, by what they are for; `Tensor` is the class
REFERENCE = {
    "graphc": ["graphc", "graphc.errors"],
    "compare": ["compare"],
    "eager": [
        "eager", "eager.Tensor", "eager.nn", "eager.nn.functional", "eager.nn.init", "eager.nn.utils", "eager.optim",
        "eager.optim.lr_scheduler", "eager.autograd", "eager.func", "eager.linalg", "eager.fft", "eager.special",
        "eager.signal.windows", "eager.distributions", "eager.utils.data", "eager.utils.checkpoint", "eager.amp",
        "eager.profiler", "eager.distributed", "eager.multiprocessing", "eager.random", "eager.testing",
    ],
}  # fmt: skip


def navigation() -> list[dict[str, object]]:
    """The site's navigation as MkDocs has it: pages whose titles are their headings."""

    def pages(folder: str, names: list[str]) -> list[str]:
        return [f"{folder}/{name}.md" for name in names]

    return [
        {"Start": ["README.md", "CHANGELOG.md"]},
        {"Tutorials": pages("docs/tutorials", TUTORIALS)},
        {"Guides": [{title: pages("docs", names)} for title, names in GUIDES.items()]},
        {"Gallery": ["gallery/index.md", *pages("gallery", GALLERY)]},
        {"API": ["reference/index.md", *({title: pages("reference", names)} for title, names in REFERENCE.items())]},
        {"Design": ["ARCHITECTURE.md", "CONTRIBUTING.md", {"Internals": pages("docs/internals", INTERNALS)}]},
    ]


def listed(entry: object = None) -> list[str]:
    """Every page of the navigation, in order."""
    if entry is None:
        entry = navigation()
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [page for each in inner for page in listed(each)]  # type: ignore[union-attr]
