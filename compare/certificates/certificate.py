"""`certify`: a file that says what was compared, how, and what came out; `verification` replays it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from compare.cases.case import Case
from compare.checking.equivalence import check
from compare.checking.findings import DisagreementError, Report
from compare.environment import environment
from compare.judging import tolerance
from compare.judging.tolerance import Verdict
from compare.modes import Mode
from graphc.errors import ReportFileError
from graphc.files import writing
from graphc.files.contents import contents
from graphc.files.json_text import Limits, parsed
from graphc.files.schema import HEX_DIGEST, Flag, Maybe, Number, OneOf, Record, Row, Schema, Table, Text, Whole, shown
from graphc.ir import Graph, Node
from graphc.ir.structure import every_node, with_bodies
from graphc.ir.text import show
from graphc.ops.aval import aval_of
from graphc.ops.dtypes import SHORT_NAMES

FORMAT = "compare certificate 1"
AVAL = rf"({'|'.join(SHORT_NAMES.values())})(\[(0|[1-9][0-9]{{0,18}})(,(0|[1-9][0-9]{{0,18}})){{0,63}}\])?"


AGREEING = {str(verdict): verdict for verdict in Verdict if verdict < Verdict.UNSUPPORTED}
LIMITS = Limits(2**24)
_HASH = Text(HEX_DIGEST, "a SHA-256 hash in hexadecimal")
_NAME = Text(most=1000)
_INPUT = Record({"aval": Text(AVAL, "a type such as f32[2,3]"), "requires_grad": Flag(), "values": _HASH})
_VERDICT = Record(
    {"mode": _NAME, "what": _NAME, "verdict": OneOf(tuple(AGREEING)), "difference": Maybe(Number(0))}
)  # fmt: skip
_FIELDS: dict[str, Schema] = {
    "name": Text(r"(?s).+", "a name"),
    "graph": _HASH,
    "inputs": Table(_NAME, _INPUT),
    "seed": Whole(0, 2**128 - 1),
    "modes": Maybe(Row(_NAME, least=1, most=1000)),
    "tolerances": _HASH,
    "environment": Table(_NAME, Text()),
    "verdicts": Row(_VERDICT, least=1),
}
SCHEMA = Record({"format": OneOf((FORMAT,)), **_FIELDS})


class CertificateError(ValueError):
    """There is nothing to certify, or a file is no certificate."""


class CertificateFileError(ReportFileError, CertificateError):
    """A file is no certificate: says what is wrong, and in which place."""


class TamperedError(CertificateFileError):
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
    tolerances   hash of the rounding errors that ops declare, and of how they are judged
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
        """Write the file, in one step. Raises CertificateError if it could not be read again; OSError."""
        text = self.to_json()
        self.parse(text.encode())
        writing.write(path, text)

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """The certificate in a file. Raises CertificateError, of which TamperedError is one."""
        refuse = CertificateFileError.of(str(path))
        try:
            text = contents(path, LIMITS.size, refuse)
        except (OSError, ValueError) as error:  # also a path that cannot be one
            if isinstance(error, CertificateFileError):
                raise
            raise refuse(str(error), "") from error
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: bytes, file: str = "") -> Certificate:
        """The certificate that a file's text is. Raises CertificateFileError naming `file`, and the place in it.

        The digest is no proof: every field must have its type, and the verdicts must be such as a certificate has.
        """
        refuse = CertificateFileError.of(file)
        content = parsed(text, LIMITS, refuse)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise refuse(f"no file of the format '{FORMAT}'", "format")
        stated = content.pop("digest", "none")
        try:
            found = digest(content)
        except ValueError as error:  # a number that is too large for a float
            raise refuse(str(error), "") from None
        if stated != found:
            told = stated if isinstance(stated, str) and len(stated) <= len(found) else shown(stated)
            raise TamperedError(f"it has been changed: its digest is {found}, and it states {told}", file=file)
        SCHEMA.check(content, "", refuse)
        for k, entry in enumerate(content["verdicts"]):
            if entry["verdict"] == str(Verdict.IDENTICAL) and entry["difference"]:
                raise refuse(f"identical, with a difference of {entry['difference']}", f"verdicts[{k}]")
        return cls(**{name: value for name, value in content.items() if name != "format"})


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
    function raises in every mode, or nothing was compared.

    >>> import eager as torch, compare
    >>> compare.certify(torch.sin, torch.ones(3), modes=["graph"]).verdicts
    ({'mode': 'graph', 'what': 'result', 'verdict': 'identical', 'difference': 0.0},)
    """
    report = check(fn, *args, modes=modes, seed=seed, **kwargs)
    if not report.ok:
        raise DisagreementError(report, "there is nothing to certify")
    certificate = record(report, Case(fn, args, kwargs, seed), modes)
    if not certificate.verdicts:
        raise CertificateError(f"nothing was compared of {certificate.name}, so there is nothing to certify")
    if path is not None:
        certificate.write(path)
    return certificate


def record(report: Report, case: Case, modes: Sequence[str | Mode] | None) -> Certificate:
    """The certificate of a report on a case. Raises CertificateError if the case has no graph."""
    if case.program is None:
        raise CertificateError(f"{case.name} raises in every mode, so there is no result to certify") from case.failure
    verdicts = [
        {"mode": f.mode, "what": f.what, "verdict": str(f.verdict), "difference": _finite(f.difference)}
        for f in report.findings
    ]  # fmt: skip
    return Certificate(
        case.name, fingerprint(case.program.graph), _inputs(case), case.seed,
        None if modes is None else tuple(mode if isinstance(mode, str) else mode.name for mode in modes),
        _hash(_canonical(_tolerances(case.program.graph))), environment(), tuple(verdicts),
    )  # fmt: skip


def _finite(difference: float | None) -> float | None:
    return None if difference is None or not math.isfinite(difference) else float(difference)


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
        nodes[id] = Node(id, inner.op, inner.inputs, inner.params, inner.results)
    return Graph("program", nodes, graph.inputs, graph.result)


def _inputs(case: Case) -> dict[str, dict[str, Any]]:
    graph = case.captured_program.graph
    wanted = {id for i in case.wrt for id in case.input_ids(i)}
    with case.preserved():
        arrays = case.arrays()
    return {
        name: {"aval": str(aval_of(array)), "requires_grad": id in wanted, "values": _hash(array.tobytes())}
        for name, id, array in zip(graph.input_names, graph.inputs, arrays, strict=True)
    }


def _tolerances(graph: Graph) -> dict[str, Any]:
    declared = {node.op.name: node.op.rounding for node in every_node(graph)}
    return {name: value for name, value in vars(tolerance).items() if name.isupper()} | {"declared": declared}


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
