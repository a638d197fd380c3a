"""Checks of integers that a call is given are made before its program runs; all others inside it. Both are eager's."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from eager.nn import functional as F
from graphc.capture.storage.sharing import written_by
from graphc.execution import prechecks

pytestmark = pytest.mark.on_numpy

TABLE = torch.arange(12.0).reshape(4, 3)
MAPPED = torch.tensor([3, 1, 0, 7])


def asked_inside(fast) -> bool:
    """Whether the latest program asks something itself."""
    return "failure" in fast.source


def same_as_eager(f, *calls, inside: bool):
    """Compiled `f` gives or raises what `f` does, call after call, and asks where it should."""
    fast = graphc.compile(f)
    raised = 0
    for args in calls:
        given = [a.clone() for a in args]
        try:
            expected = f(*args)
        except (IndexError, RuntimeError) as error:
            raised += 1
            with pytest.raises(type(error)) as caught:
                fast(*given)
            assert str(caught.value) == str(error)
        else:
            assert fast(*given).tolist() == expected.tolist()
            assert asked_inside(fast) is inside
        assert [a.tolist() for a in given] == [a.tolist() for a in args]
    return raised


def ints(*values):
    return torch.tensor(values)


INDICES = [ints(0, 3), ints(1, 1), ints(0, 4), ints(-4, 2), ints(-5, 0), ints(2, 3)]


@pytest.mark.parametrize(
    ("f", "calls", "fails"),
    [
        (lambda i: TABLE[i], INDICES, 2),
        (lambda i: TABLE[i, i - 1], INDICES, 3),
        (lambda i: F.embedding(i, TABLE), INDICES, 3),
        (lambda i: TABLE[i.reshape(2, 1).expand(2, 3) + 0], INDICES, 2),
        (lambda i: TABLE.gather(1, i.abs()[:, None]), INDICES, 5),
        (lambda i: TABLE[torch.where(i == 4, 0, i)], INDICES, 1),
        (lambda i: TABLE[MAPPED[i] // 2], [ints(0), ints(3), ints(4), ints(1)], 1),
        (lambda i: 12 // (i + 1), [ints(0, 1), ints(-1, 5), ints(3, 3)], 1),
        (lambda i: TABLE[i][torch.tensor([0, 1])[: len(i)]], [ints(0, 3), ints(5, 0)], 1),
        (lambda i: F.nll_loss(TABLE, i), [ints(0, 1, 2, -100), ints(0, 1, 2, 3), ints(2, 2, 2, 2)], 1),
    ],
)
def test_integers_that_are_given_are_asked_before(f, calls, fails):
    assert same_as_eager(f, *((i,) for i in calls), inside=False) == fails


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (lambda x: TABLE[(x * 10).long()], [torch.tensor([0.1, 0.3]), torch.tensor([0.5, 0.0])]),
        (lambda x: TABLE[x.argsort() + 3], [torch.tensor([0.1]), torch.tensor([0.5, 0.0])]),
    ],
)
def test_what_is_computed_from_floats_is_asked_inside(f, calls):
    same_as_eager(f, *((x,) for x in calls), inside=True)


def test_a_divisor_that_is_a_constant_is_asked_once():
    graph = graphc.trace(lambda i, j: (i % 7, i // j), ints(3, 9), ints(2, 0))
    by_constant, by_operand = (node.id for node in graph.nodes.values() if node.check is not None)
    found = prechecks.prechecks(graph, graph.inputs)
    assert found.settled == {by_constant, by_operand}
    assert [(q.node.id, q.ranges) for q in found.steps if isinstance(q, prechecks.Question)] == [
        (by_constant, ()), (by_operand, None)]  # fmt: skip


def test_no_element_is_divided_by_zero():
    assert same_as_eager(lambda i: i // 0, (ints(),), (ints(1),), inside=False) == 1
    assert same_as_eager(lambda i: i % (i.sum() * 0), (ints(),), (ints(1),), inside=False) == 1


def test_large_arrays_are_asked_inside():
    i = torch.zeros(prechecks.MOST_ELEMENTS + 1, dtype=torch.int64)
    bad = i.clone()
    bad[-1] = 4
    assert same_as_eager(lambda i: TABLE[i].sum(), (i,), (bad,), inside=True) == 1


def test_an_index_that_the_program_moves_on_is_asked_inside():
    where = {True: torch.tensor(1), False: torch.tensor(1)}

    def f(compiled):
        row = TABLE[where[compiled]] * 2
        where[compiled].add_(1)
        return row

    fast = graphc.compile(lambda: f(True))
    for _ in range(3):
        assert fast().tolist() == f(False).tolist()
        assert where[True].item() == where[False].item()
    assert asked_inside(fast)
    for mode in (fast, lambda: f(False)):
        with pytest.raises(IndexError, match="index 4 is out of bounds"):
            mode()
    assert where[True].item() == where[False].item() == 4


def test_an_index_that_another_program_has_made_is_waited_for():
    near = graphc.compile(lambda x: (x @ x).sum().long() * 0 + 5)
    fast = graphc.compile(lambda i: TABLE[i - 3])
    assert fast(near(torch.ones(64, 64))).tolist() == TABLE[2].tolist()
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        graphc.compile(lambda i: TABLE[i])(near(torch.ones(64, 64)))


def test_a_decision_is_made_before_the_checks_of_its_path():
    def f(i):
        return TABLE[i] if bool((i < 4).all()) else TABLE[i - 4] * 10

    fast = graphc.compile(f)
    for i in (ints(1, 2), ints(5, 6), ints(0, 3), ints(7, 7)):
        assert fast(i).tolist() == f(i).tolist()
    assert str(graphc.explain(fast)).count("calls") == 2  # each path ran twice: no call fell back on eager


def test_state_and_generator_are_as_eager_leaves_them():
    def made():
        torch.manual_seed(3)
        w = torch.ones(4, 3, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)

        def step(i):
            noise = torch.rand(2, 3)
            opt.zero_grad()
            loss = (F.embedding(i, w) * noise).sum()
            loss.backward()
            opt.step()
            return loss

        return w, step

    losses = []
    for wrap in (lambda f: f, graphc.compile):
        w, step = made()
        step = wrap(step)
        found = []
        for i in (ints(0, 3), ints(1, 1), ints(0, 4), ints(2, 2), ints(-1, 0), ints(3, 0)):
            try:
                found.append(step(i).item())
            except IndexError as error:
                found.append(str(error))
            found.append(w.detach().tolist())
        found.append(torch.rand(3).tolist())
        losses.append(found)
    eagers, ours = losses
    for a, b in zip(eagers, ours, strict=True):
        if isinstance(a, str):
            assert a == b
        else:
            np.testing.assert_allclose(b, a, rtol=1e-5)


def test_gradients_flow_through_programs_with_prechecks():
    w = torch.ones(4, 3, requires_grad=True)
    fast = graphc.compile(lambda i: F.embedding(i, w) ** 2)
    fast(ints(1, 1)).sum().backward()
    assert w.grad[1].tolist() == [4, 4, 4]
    assert not asked_inside(fast)
    with pytest.raises(IndexError):
        fast(ints(1, 4))


def test_lowered_by_hand_a_graph_asks_everything_itself():
    ex = graphc.lower(graphc.trace(lambda i: TABLE[i], ints(0, 1)))
    with pytest.raises(IndexError, match="out of range"):
        ex(ints(0, 4), TABLE)


def on_device(*tensors):
    return graphc.compile(lambda *given: tuple(t + 0 for t in given))(*tensors)


def test_what_was_asked_of_a_result_is_known_until_someone_writes_to_it():
    fast = graphc.compile(lambda i: TABLE[i])
    good, bad = on_device(ints(0, 3), ints(0, 4))
    for i in (good, good, good, bad, good, bad, bad):
        if i is good:
            assert fast(i).tolist() == TABLE[good.tolist()].tolist()
        else:
            with pytest.raises(IndexError):
                fast(i)
    good[0] = 7
    with pytest.raises(IndexError):
        fast(good)


def test_the_memory_of_numpy_is_asked_about_at_each_call():
    fast = graphc.compile(lambda i: TABLE[i])
    i = ints(0, 3)
    for _ in range(4):
        fast(i)
    i[1] = 4
    with pytest.raises(IndexError):
        fast(i)


@pytest.mark.parametrize(
    ("f", "asked"),
    [
        (lambda i: F.embedding(i, TABLE), 1),  # after its own check, indexing asks for a wider range
        (lambda i: TABLE[torch.flip(i, (0,))] + TABLE[i], 2),
        (lambda i: TABLE[i] + TABLE[-i], 2),  # -4 is in range, and 4 is not
    ],
)
def test_a_range_that_another_implies_is_not_asked(f, asked):
    graph = graphc.optimize(graphc.trace(f, ints(0, 3)))
    found = prechecks.prechecks(graph, graph.inputs)
    ranges = [r for step in found.steps if isinstance(step, prechecks.Question) for r in step.ranges or ()]
    assert len(ranges) == asked
    same_as_eager(f, *((i,) for i in INDICES), inside=False)


def test_parameters_without_a_gradient_stay_where_they_are_and_nothing_is_copied():
    used, unused = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    model = torch.nn.ModuleList([used, unused])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(4, 3)

    @graphc.compile(strict=True)  # without packs: each parameter is written by itself
    def step(x):
        optimizer.zero_grad()
        loss = used(x).square().sum() + 0 * unused(x).detach().sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(x)
    program = next(iter(step._specializations)).runner.plan.program
    written = {id(source.tensor) for source in written_by(program)}
    assert written == {id(p) for p in used.parameters()}
