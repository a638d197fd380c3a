"""What the exit code of a command says."""

from compare.checking.findings import Report
from compare.judging.tolerance import Verdict

AGREE, DISAGREE, UNKNOWN = 0, 1, 2


def exit_code(report: Report) -> int:
    """AGREE; DISAGREE if there is a bug; UNKNOWN if the program could not be captured."""
    if report.ok:
        return AGREE
    return UNKNOWN if report.verdict is Verdict.UNSUPPORTED else DISAGREE
