"""A whole training step as one program: forward, backward(), optimizer.step(), state written back."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from eager.nn import functional as F

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "dampening": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.5),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def make(optimizer: str):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    opt = OPTIMIZERS[optimizer](model.parameters())

    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss

    return model, opt, step


def batches(n: int):
    torch.manual_seed(1)
    return [(torch.randn(12, 6), torch.randint(0, 3, (12,))) for _ in range(n)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_loss_curve_parameters_and_state_are_eagers(optimizer):
    data = batches(20)
    model, opt, step = make(optimizer)
    expected = [step(x, y).item() for x, y in data]
    other, other_opt, other_step = make(optimizer)
    fast = graphc.compile(other_step)
    got = [fast(x, y).item() for x, y in data]
    np.testing.assert_allclose(got, expected, rtol=1e-4)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-2, atol=1e-5)
    for a, b in zip(opt.state.values(), other_opt.state.values(), strict=True):
        assert a.keys() == b.keys()
        for name in a:
            if isinstance(a[name], torch.Tensor):
                np.testing.assert_allclose(b[name].numpy(), a[name].numpy(), rtol=1e-2, atol=1e-6)


def test_one_program_serves_all_steps_but_the_first():
    *_, step = make("adam")
    fast = graphc.compile(step)
    for x, y in batches(6):
        fast(x, y)
    assert len(fast._specializations) <= 2  # the first step meets `.grad is None` and empty state


def adversarial():
    """A step of two nets, the first of which is trained through the second, whose `.grad` is then begun anew."""
    torch.manual_seed(0)
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 3)
    optimizers = [torch.optim.Adam(net.parameters(), lr=0.01) for net in (first, second)]

    def step(x, y):
        optimizers[0].zero_grad()
        made = first(x)
        loss = F.cross_entropy(second(made), y)
        loss.backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        (second(made.detach()).square().mean() - F.cross_entropy(second(x), y)).backward()
        optimizers[1].step()
        return loss

    return step, [*first.parameters(), *second.parameters()]


def test_nets_that_are_trained_one_through_the_other_are_one_program():
    torch.manual_seed(1)
    data = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(4)]
    (eagers, expected), (step, got) = adversarial(), adversarial()
    fast = graphc.compile(step)
    held = []
    for x, y in data:
        found, wanted = fast(x, y), eagers(x, y)
        np.testing.assert_allclose(found.item(), wanted.item(), rtol=1e-5)
        held.append((got[2].grad, expected[2].grad))  # to which the next step adds before it gives them up
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-6)
    for a, b in held:
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
    assert len(fast.explain().programs) == 1


def test_a_first_step_that_fails_makes_no_grad():
    step, parameters = adversarial()
    with pytest.raises(IndexError):
        graphc.compile(step)(torch.randn(5, 4), torch.full((5,), 3))
    assert all(p.grad is None for p in parameters)


def _counts(model, opt, kept):
    kept["steps"] += 1


def _averages(model, opt, kept):
    kept["average"] = 0.9 * kept["average"] + 0.1 * sum(p.sum() for p in model.parameters()).item()


@pytest.mark.parametrize("also", [
    _counts, _averages, lambda model, opt, kept: kept["scheduler"].step(), lambda model, opt, kept: model.zero_grad(),
], ids=["a counter", "an average", "a scheduler", "the module's zero_grad"])  # fmt: skip
def test_what_each_step_changes_is_read_anew_from_the_first_call_on(also):
    def made():
        model, opt, step = make("adam")
        kept = {"steps": 0, "average": 0.0, "scheduler": torch.optim.lr_scheduler.LambdaLR(opt, lambda k: 0.5**k)}
        return lambda x, y: (step(x, y), also(model, opt, kept))[0], opt, kept

    (eagers, opt, kept), (step, other_opt, other_kept) = made(), made()
    fast = graphc.compile(step, backend="numpy")
    for x, y in batches(4):
        np.testing.assert_allclose(fast(x, y).item(), eagers(x, y).item(), rtol=1e-4)
    assert other_kept["steps"] == kept["steps"] and opt.param_groups[0]["lr"] == other_opt.param_groups[0]["lr"]
    np.testing.assert_allclose(other_kept["average"], kept["average"], rtol=1e-4)
    assert len(fast.explain().programs) == 1


def test_a_changed_learning_rate_is_noticed():
    data = batches(6)
    losses = []
    for compiled in (False, True):
        _, opt, step = make("sgd")
        run = graphc.compile(step) if compiled else step
        curve = []
        for k, (x, y) in enumerate(data):
            opt.param_groups[0]["lr"] = 0.1 / (k // 2 + 1)
            curve.append(run(x, y).item())
        losses.append(curve)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def test_gradient_accumulation_over_calls():
    results = []
    for compiled in (False, True):
        model, opt, _ = make("sgd")

        def accumulate(x, y, model=model):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        run = graphc.compile(accumulate) if compiled else accumulate
        for x, y in batches(3):
            run(x, y)
        opt.step()
        results.append([p.detach().numpy().copy() for p in model.parameters()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_steps_alternate_between_the_modes():
    data = batches(6)
    _, _, step = make("adam")
    expected = [step(x, y).item() for x, y in data]
    _, _, other = make("adam")
    fast = graphc.compile(other)
    got = [(fast if k % 2 else other)(x, y).item() for k, (x, y) in enumerate(data)]
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_aliases_of_parameters_see_the_update():
    model, _, step = make("sgd")
    weight = next(model.parameters())
    alias, memory = weight.detach(), weight.detach().numpy()
    fast = graphc.compile(step)
    for x, y in batches(3):
        fast(x, y)
        np.testing.assert_array_equal(alias.numpy(), weight.detach().numpy())
        np.testing.assert_array_equal(memory, weight.detach().numpy())


def test_aliases_made_between_steps_see_the_next():
    model, _, step = make("adam")
    weight = next(model.parameters())
    fast = graphc.compile(step)
    aliases = []
    for x, y in batches(4):
        fast(x, y)
        aliases += [weight.detach(), weight.data, weight.detach().view(-1)]
        aliases.append(torch.from_numpy(weight.detach().numpy()))
    for alias in aliases:
        np.testing.assert_array_equal(alias.numpy().ravel(), weight.detach().numpy().ravel())


def test_values_read_between_steps_stay_what_they_were():
    model, _, step = make("sgd")
    weight = next(model.parameters())
    fast = graphc.compile(step)
    kept = []
    for x, y in batches(4):
        fast(x, y)
        kept.append((weight.detach().clone(), weight.sum().item()))
    for copy, total in kept:
        assert copy.sum().item() == pytest.approx(total, rel=1e-5)
    assert len({total for _, total in kept}) == 4


def test_a_bad_label_raises_and_changes_nothing():
    model, _, step = make("adam")
    fast = graphc.compile(step)
    (x, y), (x2, y2) = batches(2)
    fast(x, y)
    fast(x, y)
    before = [p.detach().numpy().copy() for p in model.parameters()]
    bad = y.clone()
    bad[0] = 7
    with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
        fast(x, bad)
    for p, old in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), old)
    assert np.isfinite(fast(x2, y2).item())


def test_backward_on_the_returned_loss_says_that_the_graph_is_freed():
    *_, step = make("sgd")
    loss = graphc.compile(step)(*batches(1)[0])
    assert loss.requires_grad
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_dropout_draws_the_masks_that_eager_draws():
    curves = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 3))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x, y, model=model, opt=opt):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            return loss

        run = graphc.compile(step) if compiled else step
        data = batches(5)
        torch.manual_seed(5)
        curves.append([run(x, y).item() for x, y in data])
        model.eval()
        curves[-1].append(run(*data[0]).item())
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-5)


def test_state_is_donated():
    _, _, step = make("adam")
    fast = graphc.compile(step)
    for x, y in batches(3):
        fast(x, y)
    donated = fast._latest.runner.forward.donated
    names = [fast._latest.runner.forward.graph.input_names[i] for i in donated]
    # of four parameters: themselves, two moments, and the steps, which are equal
    assert names == [f"pack_{k}" for k in range(4)]


def test_state_is_not_copied_after_the_first_step(monkeypatch):
    from graphc.lowering import Executable

    *_, step = make("adam")
    fast = graphc.compile(step)
    first, *rest = batches(6)
    fast(*first)
    fast(*rest[0])  # may be another program: the first met `.grad is None`
    copies = []
    own = Executable.own
    monkeypatch.setattr(Executable, "own", lambda self, array: copies.append(array) or own(self, array))
    for x, y in rest[1:]:
        fast(x, y)
    fast._fast_call = fast._latest.fast_call = None  # the long way, as where two sizes take turns
    fast(x, y)
    assert not copies


def test_a_loaded_optimizer_state_is_used():
    data = batches(6)
    curves = []
    for compiled in (False, True):
        _, opt, step = make("adam")
        run = graphc.compile(step) if compiled else step
        curve = [run(x, y).item() for x, y in data[:3]]
        saved = {k: (v if k != "state" else {i: {n: t.clone() for n, t in s.items()} for i, s in v.items()})
                 for k, v in opt.state_dict().items()}  # fmt: skip
        curve += [run(x, y).item() for x, y in data[3:5]]
        opt.load_state_dict(saved)
        curve += [run(x, y).item() for x, y in data[4:]]
        assert opt.state[next(iter(opt.state))]["step"].item() == 5
        curves.append(curve)
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-4)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_a_step_of_lbfgs_is_refused_at_once_and_its_remedy_works(search: str | None):
    def trained(compile):
        torch.manual_seed(0)
        model, x = torch.nn.Linear(3, 1), torch.randn(20, 3)
        y = x.sum(1, keepdim=True).sin()
        opt = torch.optim.LBFGS(model.parameters(), line_search_fn=search)
        loss = compile(lambda: F.mse_loss(model(x), y))

        def closure():
            opt.zero_grad()
            value = loss()
            value.backward()
            return value

        return [opt.step(closure).item() for _ in range(3)], loss, lambda: opt.step(closure)

    losses, loss, step = trained(graphc.compile)
    np.testing.assert_allclose(losses, trained(lambda fn: fn)[0], rtol=1e-4)
    assert len(loss._log) == 1
    with pytest.raises(graphc.errors.CaptureError, match=r"LBFGS\.step\(\).*\nRemedy: compile the loss"):
        graphc.compile(step)()
