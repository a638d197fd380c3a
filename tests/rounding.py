"""Eager programs under simulated rounding: what of a recorded outcome is an answer, and what only rounding.

`compare` judges a graph by runs with random errors of the size that a backend makes at each op. Here the same errors
(`compare.judging`) are made in eager's own ops, of a program that is more than a graph: loops, optimizers, printed
text. A number that moves with them says which machine ran the program; one that does not is the program's.

Nothing here is run for a program that agrees with what is expected of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from compare.judging.simulated import noise_in, runs
from compare.judging.tolerance import SAFETY, judge


def explained(x: np.ndarray, y: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """Where rounding explains that `x` is not `y`, by what it has made of `y` in `others`; elementwise.

    It is for `compare` to say: see `compare.judging.tolerance.judge`.
    """
    noise = noise_in(others, y)
    if noise is None:
        return np.zeros(y.shape, bool)
    bad = judge(x, y, y, noise).bad
    return np.full(y.shape, True) if bad is None else ~bad


def assert_agree(found: Sequence[np.ndarray], program: Callable[[], Sequence[np.ndarray]], rtol: float, atol: float):
    """Assert that `found` are the arrays that `program` gives eagerly, but for rounding of its ops."""
    expected = program()
    assert len(found) == len(expected)
    others: list[Sequence[np.ndarray]] = []
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        wrong = ~np.isclose(x, y, rtol, atol, equal_nan=True)
        if wrong.any():
            others = others or runs(program)
            wrong &= ~explained(x, y, [other[k] for other in others])
        assert not wrong.any(), f"array {k}: {x[wrong]}, expected {y[wrong]}"


# --- text

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?(?![\w])|(?<![\w.])-?(?:inf|nan)\b|\b(?:True|False)\b"
)


def parted(text: str) -> tuple[list[str], list[str]]:
    """The words between the numbers of a text, without regard to spaces, and the numbers, True and False among them.

    >>> parted("y = -0.00 + 2 x")
    (['y=', '+', 'x'], ['-0.00', '2'])
    """
    return ["".join(words.split()) for words in _NUMBER.split(text)], _NUMBER.findall(text)


def text_explained(expected: str, got: str, others: Sequence[str]) -> bool:
    """Whether rounding explains each character in which a printed text is not the one that was recorded.

    Only numbers with a fraction, and True and False, may differ: where a run with simulated rounding does not print
    what `got` has (`others` are their texts); numbers by `SAFETY` deviations, or by a unit of the last digit.
    """
    words, numbers = parted(expected)
    own_words, own = parted(got)
    parts = [parted(other) for other in others]
    if words != own_words or any(w != words for w, _ in parts):
        return False
    for k, (recorded, printed) in enumerate(zip(numbers, own, strict=True)):
        moved = [numbers_of[k] for _, numbers_of in parts]
        if recorded != printed and not _token_explained(recorded, printed, moved):
            return False
    return bool(others) and numbers != own


def _token_explained(recorded: str, printed: str, moved: Sequence[str]) -> bool:
    if len({printed, *moved}) == 1:
        return False
    if {recorded, printed} == {"True", "False"}:
        return True
    if not any(c in recorded + printed for c in ".ein"):  # integers, which rounding does not touch
        return False
    with np.errstate(invalid="ignore"):
        x, y, others = float(recorded), float(printed), np.array([float(m) for m in moved])
        centre = float(np.median(others))
        bound = SAFETY * float(np.sqrt(np.mean(np.square(others - centre))))
        if bound:  # what is printed is rounded once more
            bound = max(bound, _unit(recorded), _unit(printed))
    return max(abs(x - centre), abs(y - centre)) <= 1.001 * bound  # False of nan


def _unit(number: str) -> float:
    """One unit of the last digit of a number as it is printed.

    >>> _unit("-1.250"), _unit("3.5e-02")
    (0.001, 0.001)
    """
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
