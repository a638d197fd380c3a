# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""The equivalence and benchmark harness: do the modes agree, where do they part, and what does each cost.

The names below load their part of the harness on first use: pytest imports this package for its plugin in every project
of an environment. None of them is also the name of a module here, which an import would put in its place."""

from compare.benchmarking.bench import bench as bench
from compare.benchmarking.result import BenchReport as BenchReport
from compare.benchmarking.scaling import ScalingReport as ScalingReport, scaling as scaling
from compare.certificates.certificate import Certificate as Certificate, CertificateError as CertificateError, certify as certify
from compare.certificates.verification import Verification as Verification, verify as verify
from compare.checking.auditing import audit as audit
from compare.checking.equivalence import check as check
from compare.checking.findings import DisagreementError as DisagreementError, Report as Report
from compare.checking.localization import Localization as Localization, localize as localize
from compare.declared.declarations import check_mode as check_mode, check_op as check_op
from compare.fuzzing.campaign import FuzzReport as FuzzReport, fuzz as fuzz
from compare.judging.tolerance import Verdict as Verdict
from compare.minimizing import minimize as minimize
from compare.minimizing.search import Minimized as Minimized
from compare.minimizing.statements import MinimizeError as MinimizeError
from compare.modes import register_mode as register_mode
from compare.reporting.html_report import HtmlReport as HtmlReport, report as report
