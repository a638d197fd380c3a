"""The equivalence and benchmark harness: do the modes agree, where do they part, and what does each cost.

The names below load their part of the harness on first use: pytest imports this package for its plugin in every project
of an environment. None of them is also the name of a module here, which an import would put in its place.
"""

from __future__ import annotations

from graphc.lazy import lazy

_WHERE = {
    "BenchReport": "compare.benchmarking",
    "Certificate": "compare.certificates.certificate",
    "CertificateError": "compare.certificates.certificate",
    "DisagreementError": "compare.checking.findings",
    "FuzzReport": "compare.fuzzing",
    "HtmlReport": "compare.reporting",
    "Localization": "compare.checking.localization",
    "MinimizeError": "compare.minimizing",
    "Minimized": "compare.minimizing",
    "Report": "compare.checking.findings",
    "ScalingReport": "compare.benchmarking",
    "Verdict": "compare.judging.tolerance",
    "Verification": "compare.certificates.verification",
    "audit": "compare.checking.auditing",
    "bench": "compare.benchmarking",
    "certify": "compare.certificates.certificate",
    "check": "compare.checking.equivalence",
    "check_mode": "compare.declared.declarations",
    "check_op": "compare.declared.declarations",
    "fuzz": "compare.fuzzing",
    "localize": "compare.checking.localization",
    "minimize": "compare.minimizing",
    "register_mode": "compare.modes",
    "report": "compare.reporting",
    "scaling": "compare.benchmarking",
    "verify": "compare.certificates.verification",
}
# pyright: reportUnsupportedDunderAll=false
__all__ = [*_WHERE]

__getattr__, __dir__ = lazy(__name__, _WHERE)
