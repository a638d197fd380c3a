"""The equivalence and benchmark harness: do the modes agree, where do they part, and what does each cost.

The names below load their part of the harness on first use: pytest imports this package for its plugin in every project
of an environment. None of them is also the name of a module here, which an import would put in its place.
"""

from __future__ import annotations

from graphc.lazy import lazy

_NAMES = {
    "compare.benchmarking": "BenchReport ScalingReport bench scaling",
    "compare.certificates.certificate": "Certificate CertificateError certify",
    "compare.checking.findings": "DisagreementError Report",
    "compare.fuzzing": "FuzzReport fuzz",
    "compare.reporting": "HtmlReport report",
    "compare.checking.localization": "Localization localize",
    "compare.minimizing": "MinimizeError Minimized minimize",
    "compare.judging.tolerance": "Verdict",
    "compare.certificates.verification": "Verification verify",
    "compare.checking.auditing": "audit",
    "compare.checking.equivalence": "check",
    "compare.declared.declarations": "check_mode check_op",
    "compare.modes": "register_mode",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
# pyright: reportUnsupportedDunderAll=false
__all__ = sorted(_WHERE)

__getattr__, __dir__ = lazy(__name__, _WHERE)
