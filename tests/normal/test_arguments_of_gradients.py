"""`func.grad` holds back its arguments by `stop_gradient`: that keeps no form from being found."""

import pytest

import eager as torch
import graphc
from graphc.passes.pipeline import optimize
from tests.normal.searches import cost

x, W, b = torch.randn(4, 300, 16), torch.randn(8, 16), torch.randn(8)
PROGRAMS = {
    "a mean of biased rows": (lambda x, W, b: torch.nn.functional.linear(x, W, b).mean(1), (x, W, b)),
    "a sum of what is centred": (lambda x, W, b: ((x - W[0]) @ W.T).sum(1), (x, W, b)),
    "a row of sums": (lambda x, W, b: (x @ W.T + b)[:, 3], (x, W, b)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bias_is_no_shift(name):
    f, given = PROGRAMS[name]

    def loss(*args):
        return (f(*args) ** 2).sum()

    leaves = [t.clone().requires_grad_() for t in given]
    by_backward = graphc.trace(lambda *ts: torch.autograd.grad(loss(*ts), ts, materialize_grads=True), *leaves)
    by_transform = graphc.trace(torch.func.grad(loss, (0, 1, 2)), *given)
    assert cost(optimize(by_transform)) <= 1.01 * cost(optimize(by_backward))
