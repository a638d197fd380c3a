"""What may fail fails, whether or not anything reads its result."""

from __future__ import annotations

import pytest

import compare
import eager as torch
import graphc


def both(fn, calls):
    """The outcomes of the calls in both modes."""
    compiled = graphc.compile(fn)
    found = []
    for mode in (fn, compiled):
        outcomes = []
        for make in calls:
            try:
                outcomes.append(str(mode(*make())))
            except Exception as error:
                outcomes.append((type(error), str(error).split(" (at ")[0]))
        found.append(outcomes)
    return found


def indexed(x, i):
    x[i]
    return x.sum()


def divided(a, b):
    a // b
    return a * 2


def embedded(x, i):
    torch.nn.functional.embedding(i, x)
    return x * 2


def scored(x, i):
    torch.nn.functional.cross_entropy(x, i)
    return x * 2


def chosen(x, i):
    graphc.cond(x.sum() > 0, lambda x, i: x[i], lambda x, i: x[i] * 2, x, i)
    return x * 2


def nothing(x, i):
    x[i]


INDICES = [lambda k=k: (torch.ones(2, 2), torch.tensor(k)) for k in ([0, 1], [0, 9], [1, 1], [9, 9])]


@pytest.mark.parametrize("fn", [indexed, embedded, scored, chosen, nothing], ids=lambda fn: fn.__name__)
def test_indices_out_of_range(fn):
    eagerly, compiled = both(fn, INDICES)
    assert compiled == eagerly and any(isinstance(outcome, tuple) for outcome in eagerly)


def test_division_by_zero():
    calls = [lambda k=k: (torch.tensor([4]), torch.tensor([k])) for k in (2, 0, 1, 0)]
    eagerly, compiled = both(divided, calls)
    assert compiled == eagerly and isinstance(eagerly[1], tuple)


def is_positive_definite(a):
    try:
        torch.linalg.cholesky(a)
    except RuntimeError:
        return False
    return True


def info(a):
    return torch.linalg.cholesky_ex(a).info


@pytest.mark.parametrize("fn", [is_positive_definite, info])
def test_python_may_catch_what_is_raised(fn):
    calls = [lambda k=k: (k * torch.eye(3),) for k in (1, -1, 1, -1)]
    eagerly, compiled = both(fn, calls)
    assert compiled == eagerly and eagerly[0] != eagerly[1]


def test_gradients_flow_as_ever():
    w = torch.ones(3, requires_grad=True)

    @graphc.compile
    def loss(x, i):
        w[i]
        return (w * x).sum()

    loss(torch.arange(3.0), torch.tensor([2])).backward()
    assert w.grad.tolist() == [0, 1, 2]
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        loss(torch.ones(3), torch.tensor([7]))
    loss(torch.arange(3.0), torch.tensor([0])).backward()
    assert w.grad.tolist() == [0, 2, 4]


def test_state_stays_when_it_fails():
    count = torch.zeros(())

    @graphc.compile
    def step(x, i):
        count.add_(1)
        x[i]
        return count * 2

    step(torch.ones(2), torch.tensor([0]))
    with pytest.raises(IndexError):
        step(torch.ones(2), torch.tensor([5]))
    assert count.item() == 2  # as in eager, which counts before it fails


def test_all_modes_of_compare_raise():
    report = compare.check(indexed, torch.ones(2), torch.tensor([9]))
    assert report.verdict is compare.Verdict.IDENTICAL


def test_of_several_results_one_is_enough():
    """The check of a decomposition is that of any of its results: the others are not computed for it."""
    values = graphc.compile(lambda a: torch.linalg.svdvals(a).sum())
    nothing = graphc.compile(lambda a: torch.linalg.svdvals(a) is None or a.sum())
    a = torch.randn(3, 3)
    a[1, 1] = float("nan")
    for compiled in (values, nothing):
        compiled(torch.eye(3))
        assert len(compiled.graph.outputs) <= 2
        with pytest.raises(torch.linalg.LinAlgError):
            compiled(a)
    assert len(values.graph.outputs) == 1


def test_eigenvalues_that_are_only_summed_up_are_refused_as_ever():
    compiled = graphc.compile(lambda a: torch.linalg.eigvalsh(a).sum())
    assert float(compiled(torch.eye(3))) == 3
    assert "eigh" not in {op.name for op in graphc.optimize(compiled.graph).ops}
    with pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
        compiled(torch.full((3, 3), float("nan")))
