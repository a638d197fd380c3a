"""Every program of this package does the same eagerly and compiled."""

from __future__ import annotations

import pytest

from tests.scenarios import (  # noqa: F401  (programs)
    aliases,
    arguments,
    branches,
    callables,
    changing_arguments,
    changing_state,
    compiled_modules,
    counted,
    grads,
    inner_rules,
    interplay,
    later_calls,
    library_state,
    models,
    python_state,
    reading,
    rules,
    texts_and_choices,
    training,
    tutorials,
    values_in_and_out,
    values_read,
    writes,
)
from tests.scenarios.harness import PROGRAMS, check

pytestmark = pytest.mark.on_numpy


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:.* is traced and compiled again for each value:UserWarning")
@pytest.mark.filterwarnings("ignore:.* is compiled for 2 of the values:UserWarning")
def test_compiled_does_what_eager_does(name: str) -> None:
    assert check(PROGRAMS[name]) == ""
