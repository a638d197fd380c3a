"""The gallery: reports of real runs, each on a page of the site, with the file that its command writes beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import compare
import eager as torch
import graphc
from docs.site.notebooks import boxed
from eager import nn
from graphc.display import Block, Displayed, Picture, Remark
from graphc.display.as_html import fragment
from graphc.display.as_html import page as html_page

Loss = tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]


class Exhibit(NamedTuple):
    """A report. code: how a reader gets it; document: the file that stands alone."""

    title: str
    about: str
    code: str
    blocks: Iterable[Block]
    document: str


def classifier() -> Loss:
    """The loss of a small network on random digits, and its arguments."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def loss(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(x), labels)

    return loss, (torch.randn(128, 64), torch.randint(0, 10, (128,)))


def softplus_chain(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """What the README's picture shows."""
    return torch.log(1 + torch.exp(a.T @ a @ x)).mean()


def chain_arguments(size: int = 300) -> tuple[torch.Tensor, torch.Tensor]:
    """A square matrix and a vector."""
    torch.manual_seed(0)
    return torch.randn(size, size) / size**0.5, torch.randn(size)


def _report() -> Exhibit:
    loss, args = classifier()
    made = compare.report(loss, *args, min_time=0.05)
    about = "Do the modes agree, what does each cost, and what did the optimizer do: one function, one page."
    return Exhibit("Report on a classifier", about, 'compare.report(loss, x, labels).write("report.html")',
                   made.blocks(), made.html())  # fmt: skip


def _displayed(title: str, about: str, code: str, shown: Displayed) -> Exhibit:
    return Exhibit(title, about, code, [*shown.blocks()], html_page(title, shown.blocks(), shown.to_json()))


def _explanation() -> Exhibit:
    explained = graphc.explain(graphc.optimize(graphc.trace(softplus_chain, *chain_arguments())), details=True)
    about = "Each rule that fired, the line it fired at, and the operations it saves."
    return _displayed(
        "What the optimizer did", about, "graphc.explain(graphc.optimize(graph), details=True)", explained
    )


def _graph() -> Exhibit:
    loss, args = classifier()
    graph = graphc.trace(loss, *args)
    about = "Boxes are operations, colours are kinds of operations. Modules open and close on the page of its own."
    return Exhibit("A graph", about, 'open("graph.html", "w").write(graphc.trace(loss, x, labels).to_html())',
                   [Picture(graph.to_svg(layout="layers"), pans=True)], graph.to_html())  # fmt: skip


def _charts() -> Exhibit:
    from compare.benchmarking.plots import timings_svgs

    bench = compare.bench(softplus_chain, *chain_arguments(), modes=["eager", "compiled", "jax.jit"], min_time=0.1)
    blocks = [*map(Picture, timings_svgs(bench)), *bench.blocks()]
    about = "What the first call costs, what each later one costs, and after how many calls compiling has paid."
    title = "What each mode costs"
    return Exhibit(title, about, "compare.bench(softplus_chain, a, x)", blocks, html_page(title, blocks))


def _memory() -> Exhibit:
    loss, args = classifier()
    about = "What a program takes of memory at its peak, predicted from its graph before anything runs."
    return _displayed("Memory of a training loss", about, "graphc.memory(loss, x, labels)", graphc.memory(loss, *args))


EXHIBITS: dict[str, Callable[[], Exhibit]] = {
    "report": _report,
    "explanation": _explanation,
    "graph": _graph,
    "charts": _charts,
    "memory": _memory,
}


def page(name: str, exhibit: Exhibit) -> str:
    """An exhibit as Markdown."""
    shown = boxed(fragment([*exhibit.blocks] or [Remark("Nothing.")]))
    return (
        f"# {exhibit.title}\n\n{exhibit.about}\n\n```python\n{exhibit.code}\n```\n\n"
        f'<a class="md-button" href="{name}.document.html">Open it as a page of its own</a>\n\n'
        f'<div class="output">\n{shown}\n</div>\n'
    )


def index(exhibits: dict[str, Exhibit]) -> str:
    """The page that leads to all exhibits."""
    lines = ["# Gallery", "", "Reports of the run that made this site. None is touched up.", ""]
    lines += [f"- [{exhibit.title}]({name}.md): {exhibit.about}" for name, exhibit in exhibits.items()]
    return "\n".join(lines) + "\n"
