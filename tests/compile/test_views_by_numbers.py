"""x[i] with a tensor for a number is a view: what is written to it is written to x, in both modes."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import eager as torch
import graphc

pytestmark = pytest.mark.on_numpy


def written(x, i):
    y = x[i]
    y.add_(10)


def written_before(x, i):
    y = x[i]
    x.mul_(2)
    return y * 1


def index_written(x, i):
    y = x[i]
    i.add_(1)
    y.add_(100)
    return y * 1


def in_place_items(x, i):
    x[i] += 1
    x[i] *= 2
    x[i][1] = 7
    return x.sum()


def differentiated(x, i):
    w = x.detach().requires_grad_()
    y = w * 2
    y[i].mul_(3)
    y[:, i].mul_(x[i])
    y.sum().backward()
    return y.detach(), w.grad


PROGRAMS = {
    "written": written,
    "written before": written_before,
    "index written": index_written,
    "in place": in_place_items,
    "gradients": differentiated,
    "chosen": lambda x, i: (x[0][x[0].argmax()].mul_(0), x)[1],
    "a column": lambda x, i: x[:, i].fill_(5),
    "number and tensor": lambda x, i: (x[i, 0].mul_(3), x * 2)[1],
    "new dims": lambda x, i: (x[None, i].sub_(1), x[..., i].add_(2), x * 2)[2],
    "twice": lambda x, i: (x[i, i].mul_(3), x * 2)[1],
    "of a view": lambda x, i: (x.T[i][1:].add_(1), x * 1)[1],
    "reshaped": lambda x, i: (x[i].view(3, 1).add_(1), x * 1)[1],
    "NumPy's": lambda x, i: (x[np.array(1)].add_(1), x * 1)[1],
    "a constant": lambda x, i: (x[torch.tensor(1)].add_(1), x * 1)[1],
    "strides": lambda x, i: (x[:, i].stride(), x[i].sum()),
    "read": lambda x, i: x[i],
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_modes_agree(program):
    compiled = graphc.compile(program)
    for k in (0, 1, 2, -1, 1):
        given = torch.arange(9.0).view(3, 3), torch.tensor(k)
        other = copy.deepcopy(given)
        expected, found = (str(mode(*args)) for mode, args in ((program, given), (compiled, other)))
        assert found == expected and str(other) == str(given)


def test_one_program_for_all_indices():
    compiled = graphc.compile(written)
    for k in range(3):
        compiled(torch.zeros(3, 3), torch.tensor(k))
    assert "written: 1 program" in str(graphc.explain(compiled))


def test_out_of_range_changes_nothing():
    x = torch.zeros(3)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 3"):
        graphc.compile(written)(x, torch.tensor(5))
    assert x.tolist() == [0, 0, 0]
