"""State that a program updates stays as it was when a run-time check fails, wherever the check stands.

Indices are given as floats: what is computed from those is checked inside the program.
"""

from __future__ import annotations

import pytest

import eager as torch
import graphc


def table_then_state(state, i):
    row = torch.eye(4)[i.long()]
    state.add_(row.sum(0))
    state.mul_(2)
    return state.sum()


def state_then_table(state, i):
    state.add_(1)
    return (torch.eye(4)[i.long()] * state).sum()


def written_twice(state, i):
    state.add_(torch.eye(4)[i.long()].sum(0))
    other = state * 2
    state.copy_(other)
    return other


@pytest.mark.parametrize("f", [table_then_state, state_then_table, written_twice])
def test_captured_state_after_a_failing_check_is_eagers(f):
    ours, eagers = torch.ones(4), torch.ones(4)
    step = graphc.compile(lambda i: f(ours, i))
    for places in ([0, 3], [1, 1], [0, 4], [2, 2], [9, 0], [3, 3]):
        i = torch.tensor(places, dtype=torch.float32)
        try:
            expected = f(eagers, i)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error).split("(")[0].strip()[:20]):
                step(i)
        else:
            assert step(i).tolist() == expected.tolist()
        assert ours.tolist() == eagers.tolist()


def test_what_is_computed_from_new_state_reads_the_restored_one():
    state = torch.ones(3)

    def step(i):
        row = torch.eye(3)[i.long()]
        state.add_(row)
        return state * 2

    fast = graphc.compile(step)
    fast(torch.tensor(1.0))
    source = fast.source
    assert source.index("fine = failure < 0") < source.index("lax.select(fine") < source.index("return")
