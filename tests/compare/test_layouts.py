"""Layouts in random programs, their scripts, and minimization: as they were drawn, and no odder than the bug needs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from compare.fuzzing.generator import generate
from compare.fuzzing.program import Input, Program, names
from compare.layouts.layout import Layout, layout_of, placed, stepped
from compare.minimizing import minimize_program
from compare.minimizing.statements import statements, values_of
from compare.selftest.planting import declared
from graphc.ops import OPS
from graphc.ops.dtypes import FLOAT32


@functools.cache
def programs() -> list[Program]:
    return [generate(number) for number in range(700, 780)]


def test_random_programs_have_inputs_of_all_kinds() -> None:
    inputs = [i for p in programs() for i in p.inputs]
    laid = [i.layout for i in inputs if i.layout is not None]
    assert any(i.view for i in inputs) and any(lay.shift for lay in laid) and any(lay.offset for lay in laid)
    assert any(0 in lay.strides for lay in laid) and any(len({*lay.strides}) > 1 for lay in laid)
    assert any(i.layout is None and not i.view for i in inputs)


@pytest.mark.parametrize(
    ("layout", "plain"),
    [
        (Layout((3, 1)), True),
        (Layout((3, 1), offset=2), True),
        (Layout((3, 1), shift=1), False),
        (Layout((1, 2)), False),
        (Layout((6, 2)), False),
        (Layout((0, 1)), False),
    ],
)
def test_a_layout_is_plain_wherever_it_begins(layout: Layout, plain: bool) -> None:
    assert layout.is_plain((2, 3)) is plain


BYTES = np.arange(64, dtype=np.uint8)


@pytest.mark.parametrize(
    ("strides", "found"),
    [((8, 4), (2, 1)), ((-4, 8), (-1, 2)), ((0, 4), (0, 1)), ((4, 0), (1, 0)), ((6, 2), None), ((8, 6), None)],
)
def test_what_no_multiple_of_elements_says_is_no_layout(strides: tuple[int, int], found: Any) -> None:
    array = np.ndarray((2, 2), np.float32, BYTES, 16, strides)
    layout = layout_of(array)
    assert (None if layout is None else layout.strides) == found


def test_a_script_makes_the_inputs_as_they_were() -> None:
    for program in programs():
        scope: dict[str, Any] = {**names(), "placed": placed}
        for i in program.inputs:
            if not (i.layout is not None and 0 in i.layout.strides):  # read-only, of which from_numpy warns
                exec(f"{i.name} = {i.text}", scope)
            else:
                scope[i.name] = i.tensor(scope)
        given = program.given()
        for i in program.inputs:
            a, b = given[i.name]._array(), scope[i.name]._array()
            assert a.strides == b.strides and a.tobytes() == b.tobytes(), i
            assert given[i.name].requires_grad is scope[i.name].requires_grad is i.requires_grad
            for other in i.reads():
                assert np.shares_memory(b, scope[other]._array()) and np.shares_memory(a, given[other]._array())
        assert ("import placed" in program.script()) is any(i.layout is not None and not i.view for i in program.inputs)


def test_an_input_whose_memory_is_gone_has_its_own() -> None:
    x = Input("x", np.arange(6.0), False)
    y = Input("y", np.arange(2.0, 4.0), False, view="x.detach().as_strided((2,), (1,), 2)")
    both, alone = (Program("p", given, statements("z = y * 2"), ["z"]) for given in ((x, y), (y,)))
    assert both.inputs[1].view and not alone.inputs[0].view
    assert both.function(*both.arguments())[0].tolist() == alone.function(*alone.arguments())[0].tolist() == [4.0, 6.0]


def test_values_of_a_program_keep_their_layout() -> None:
    text = "a = x.T\nb = a[:, ::2]\nc = b * 1"
    program = Program("p", [Input("x", np.ones((4, 6), FLOAT32), False)], statements(text), ["c"])
    found = values_of(program)
    steps = {name: i.layout and i.layout.strides for name, i in found.items()}
    assert steps["a"] == (1, 6) and steps["b"] == (1, 12)
    assert all(values_of(Program("p", [i], statements("y = x * 1"), ["y"])) for i in program.inputs)


def test_minimizing_keeps_the_layout_that_the_bug_needs() -> None:
    op = OPS["abs"]
    sound = op.kernel

    def wrong(x: Any) -> Any:
        return sound(x) + x.dtype.type(x.ndim == 1 and x.size > 1 and x.strides[0] == 4 * x.itemsize)

    numbers = np.arange(1, 7).astype(FLOAT32)
    inputs = [
        Input("x", numbers, True, stepped((6,), 4)._replace(offset=3, shift=2)),
        Input("y", numbers, True),
        Input("z", numbers[:4], False, view="y.detach().as_strided((4,), (1,), 2)"),
    ]
    program = Program("p", inputs, statements("a = x * y\nb = torch.abs(x)\nc = a + b * 2\nd = c[:4] * z"), ["d"])
    with declared(op, kernel=wrong):
        found = minimize_program(program, ["graph"])
        assert not found.report.ok
        (given,) = found.program.inputs
        assert given.layout == Layout((4,)) and not given.requires_grad and given.array.size == 2
        assert "placed(" in found.script and found.program.ops == () and "abs" in found.program.source
