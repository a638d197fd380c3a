"""`certify`: a file that says what was compared, how, and what came out; `verification` replays it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from compare.checking.case import Case
from compare.checking.equivalence import check
from compare.checking.findings import DisagreementError, Report
from compare.environment import environment
from compare.judging import tolerance
from compare.modes import Mode
from graphc.ir import Graph, Node
from graphc.ir.structure import with_bodies
from graphc.ir.text import show
from graphc.ops.aval import aval_of

FORMAT = "compare certificate 1"


class CertificateError(ValueError):
    """There is nothing to certify, or a file is no certificate."""


class TamperedError(CertificateError):
    """The content of a certificate does not have the digest that it states."""


@final
@dataclass(frozen=True)
class Certificate:
    """The record of one `check` whose modes agreed. Hashes are SHA-256, in hexadecimal.

    name         of the function
    graph        hash of the captured graph's text, without the places it comes from
    inputs       of the graph, by name: aval, requires_grad, and the hash of the values
    seed         of the cotangents and the simulated rounding
    modes        that were asked for; None: the default ones
    tolerances   hash of the table of rounding errors
    environment  see `compare.environment`
    verdicts     of each finding: mode, what, verdict, and the largest difference from eager (None: none was measured)
    """

    name: str
    graph: str
    inputs: Mapping[str, Mapping[str, Any]]
    seed: int
    modes: Sequence[str] | None
    tolerances: str
    environment: Mapping[str, str]
    verdicts: Sequence[Mapping[str, Any]]

    def to_json(self) -> str:
        """The file's text. `digest` is of everything else in it; it is no signature: whoever changes the file on
        purpose can compute it again."""
        content = {"format": FORMAT, **dataclasses.asdict(self)}
        return json.dumps({**content, "digest": digest(content)}, indent=2, allow_nan=False) + "\n"

    def write(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """The certificate in a file. Raises CertificateError, of which TamperedError is one."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CertificateError(f"{path}: {error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise CertificateError(f"{path} is no file of the format '{FORMAT}'")
        stated = content.pop("digest", "none")
        if stated != (found := digest(content)):
            raise TamperedError(f"{path} has been changed: its digest is {found}, and it states {stated}")
        try:
            return cls(**{name: value for name, value in content.items() if name != "format"})
        except TypeError as error:
            raise CertificateError(f"{path}: {error}") from error


def certify(
    fn: Callable[..., Any],
    *args: Any,
    path: str | Path | None = None,
    modes: Sequence[str | Mode] | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> Certificate:
    """Check `fn(*args, **kwargs)` and record it, in the file `path` if that is given.

    modes, seed  as for `check`

    Raises DisagreementError if the modes do not agree: a certificate says that they do. CertificateError if the
    function raises in every mode.

    >>> import eager as torch, compare
    >>> compare.certify(torch.sin, torch.ones(3), modes=["graph"]).verdicts
    ({'mode': 'graph', 'what': 'result', 'verdict': 'identical', 'difference': 0.0},)
    """
    report = check(fn, *args, modes=modes, seed=seed, **kwargs)
    if not report.ok:
        raise DisagreementError(report, "there is nothing to certify")
    certificate = record(report, Case(fn, args, kwargs, seed), modes)
    if path is not None:
        certificate.write(path)
    return certificate


def record(report: Report, case: Case, modes: Sequence[str | Mode] | None) -> Certificate:
    """The certificate of a report on a case. Raises CertificateError if the case has no graph."""
    if case.program is None:
        raise CertificateError(f"{case.name} raises in every mode, so there is no result to certify") from case.failure
    verdicts = [
        {"mode": f.mode, "what": f.what, "verdict": str(f.verdict), "difference": f.difference}
        for f in report.findings
    ]  # fmt: skip
    return Certificate(
        case.name, fingerprint(case.program.graph), _inputs(case), case.seed,
        None if modes is None else tuple(mode if isinstance(mode, str) else mode.name for mode in modes),
        _hash(_canonical(_tolerances())), environment(), tuple(verdicts),
    )  # fmt: skip


def digest(content: Mapping[str, Any]) -> str:
    """The hash of values that JSON can hold, whatever their order and spacing in a file."""
    return _hash(json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False))


def fingerprint(graph: Graph) -> str:
    """The hash of what a graph computes: its text without the function's name, files, lines and scopes."""
    return _hash(show(_nameless(graph)))


def _nameless(graph: Graph) -> Graph:
    nodes: dict[int, Node] = {}
    for id, node in graph.nodes.items():
        inner = with_bodies(node, _nameless) if node.op.structured else node
        nodes[id] = Node(id, inner.op, inner.inputs, inner.params, inner.aval)
    return Graph("program", nodes, graph.inputs, graph.result)


def _inputs(case: Case) -> dict[str, dict[str, Any]]:
    assert case.program is not None
    graph = case.program.graph
    wanted = {id for i in case.wrt for id in case.input_ids(i)}
    with case.preserved():
        arrays = case.arrays()
    return {
        name: {"aval": str(aval_of(array)), "requires_grad": id in wanted, "values": _hash(array.tobytes())}
        for name, id, array in zip(graph.input_names, graph.inputs, arrays, strict=True)
    }


def _tolerances() -> dict[str, Any]:
    return {name: value for name, value in vars(tolerance).items() if name.strip("_").isupper()}


def _canonical(value: Any) -> str:
    """A text of a table's entry that is the same in every process."""
    if isinstance(value, Mapping):
        return _canonical({f"{_canonical(key)}: {_canonical(item)}" for key, item in value.items()})
    if isinstance(value, (str, bytes, int, float, complex, np.number, type(None))):
        return repr(value)
    if isinstance(value, Collection):
        texts = [_canonical(item) for item in value]
        return f"({', '.join(sorted(texts) if isinstance(value, (set, frozenset)) else texts)})"
    return getattr(value, "__qualname__", type(value).__qualname__)  # code: the version stands for it


def _hash(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
