"""What the exit code of a command says."""

from compare.checking.findings import Report
from compare.judging.tolerance import Verdict

AGREE, DISAGREE, UNKNOWN = 0, 1, 2


def exit_code(report: Report) -> int:
    """AGREE; DISAGREE if there is a bug; UNKNOWN if the program could not be captured, or no mode has an opinion."""
    if report.ok:
        others = [report.verdict_of(mode) for mode in report.modes if mode != "eager"]
        silent = not report.modes or (others and all(verdict is Verdict.NO_OPINION for verdict in others))
        return UNKNOWN if silent else AGREE
    return UNKNOWN if report.verdict is Verdict.UNSUPPORTED else DISAGREE
