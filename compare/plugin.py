"""The pytest plugin: fixtures `compare_check` and `in_mode`, the marker `compare`, and options.

pytest loads this module in every project of an environment where the package is installed, so it loads the harness only
when a test asks for a fixture.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pytest

if TYPE_CHECKING:
    from compare.checking.findings import Report
    from compare.modes import Mode

RUNNING = pytest.StashKey[pytest.Item]()  # the test that runs: its markers are asked
VALUE_MODES = ("eager", "graph", "compiled")  # in which `in_mode` runs a test if nothing else is asked for


@final
@dataclass(frozen=True)
class Settings:
    """What the marker and the options say.

    modes   names of modes; None: the fixture's own choice
    seed    of the cotangents
    raises  the exception that is expected of every mode, by exactly this class
    order   2: the gradients' own gradients are compared as well
    audit   whether further calls are compared: see `compare.audit`
    """

    modes: Sequence[str] | None = None
    seed: int = 0
    raises: type[Exception] | None = None
    order: int = 1
    audit: bool = False


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("compare", "modes of execution")
    group.addoption("--compare-modes", help="modes for compare_check and in_mode, separated by commas")
    group.addoption("--compare-seed", type=int, help="seed for compare_check")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "compare(modes=None, seed=0, raises=None, order=1, audit=False): the modes that compare_check and in_mode use, "
        "the exception that every mode must raise, and the options of compare.check",
    )


def settings_of(node: pytest.Item | Any, config: pytest.Config) -> Settings:
    """The command line's options, else what the nearest marker says, else the defaults."""
    given: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("compare"))):  # nearest last
        if marker.args or not marker.kwargs.keys() <= Settings.__dataclass_fields__.keys():
            known = ", ".join(f"{name}=" for name in Settings.__dataclass_fields__)
            raise pytest.UsageError(f"@pytest.mark.compare takes {known} not {marker}")
        given |= marker.kwargs
    modes, seed = config.getoption("--compare-modes"), config.getoption("--compare-seed")
    given |= {"modes": modes.split(",")} if modes else {}
    given |= {"seed": seed} if seed is not None else {}
    return Settings(**given)


def chosen(names: Sequence[str] | None) -> list[Mode] | None:
    """The modes of these names. Raises pytest's error for a wrong option."""
    from compare.modes import modes_named

    try:
        return None if names is None else modes_named(names)
    except ValueError as error:
        raise pytest.UsageError(f"--compare-modes or @pytest.mark.compare: {error}") from error


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[RUNNING] = item


@pytest.fixture(scope="session")  # Hypothesis refuses fixtures that do not outlive one of its examples
def compare_check(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """`compare.check`, as an assertion: the test fails where the modes part, and says at which op and in which line.

        def test_loss(compare_check):
            compare_check(loss, w, b, x, y)

    Modes and seed come from `@pytest.mark.compare(modes=[...], seed=...)` and the options --compare-modes and
    --compare-seed. A function that raises fails the test, though every mode raises the same, unless the marker has
    `raises=`.
    """
    from compare.checking.equivalence import check
    from compare.checking.localization import localized

    config = request.config

    def compare_check(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
        __tracebackhide__ = True
        settings = settings_of(config.stash[RUNNING], config)
        options = {
            "modes": chosen(settings.modes),
            "seed": settings.seed,
            "order": settings.order,
            "audit": settings.audit,
        }
        report = check(fn, *args, **options, **kwargs)
        if not report.ok:
            pytest.fail(str(localized(report)))
        _expect(report, settings.raises)
        return report

    return compare_check


def _expect(report: Report, expected: type[Exception] | None) -> None:
    __tracebackhide__ = True
    raised = {f.detail for f in report.findings if f.what == "exception"}  # modes that agree raise one class
    if expected is None and raised:
        pytest.fail(
            f"{report.name}: every mode raises {report.raised or ', '.join(raised)}. If that is what the test is "
            f"about, say so: @pytest.mark.compare(raises={', '.join(raised)})"
        )
    if expected is not None and raised != {expected.__name__}:
        pytest.fail(f"{report.name}: every mode {f'raises {raised.pop()}' if raised else 'returns'}, "
                    f"expected {expected.__name__}")  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "in_mode" in metafunc.fixturenames:
        modes = chosen(settings_of(metafunc.definition, metafunc.config).modes or VALUE_MODES)
        valued = [mode for mode in modes or () if not mode.wide]  # the others have an opinion on gradients only
        metafunc.parametrize("in_mode", valued, ids=[mode.name for mode in valued], indirect=True)


@pytest.fixture
def in_mode(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs a function in one mode; a test that takes this runs once for each mode, which its id names.

        def test_softmax_sums_to_one(in_mode):
            y = in_mode(softmax, x)
            assert torch.allclose(y.sum(-1), torch.ones(3))

    What the call changes is put back. `in_mode.name` is the mode; the marker and --compare-modes choose others.
    """
    from compare.checking.running import run

    call = functools.partial(run, request.param)
    call.name = request.param.name  # type: ignore[attr-defined]
    return call
