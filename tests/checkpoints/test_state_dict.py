"""States by the names of parameters: what PyTorch's functions give, and what they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eager
import eager.distributed.checkpoint as dcp
from eager.distributed.checkpoint import state_dict as ours


def trained(torch: Any, optimizer: str, *, wrap: bool = False, **settings: Any) -> tuple[Any, Any]:
    """A model with a shared and a frozen parameter, and its optimizer after a step; always the same."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3))
    model.add_module("again", torch.nn.Linear(3, 3))
    model.again.weight = model[2].weight
    model[0].bias.requires_grad_(False)
    for k, parameter in enumerate(model.parameters()):
        parameter.data = torch.linspace(k, k + 1, parameter.numel()).reshape(parameter.shape)
    made = getattr(torch.optim, optimizer)(
        [{"params": model[0].parameters(), "lr": 0.1}, {"params": [*model[1].parameters(), *model[2].parameters()]}],
        lr=0.05, **settings,
    )  # fmt: skip
    model[:3](torch.linspace(0, 1, 8).reshape(4, 2)).pow(2).sum().backward()
    made.step()
    if wrap:
        outer = torch.nn.Module()
        outer.add_module("_orig_mod", model)
        return outer, made
    return model, made


def plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return [round(x, 4) for x in value.double().reshape(-1).tolist()]
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [*map(plain, value)] if isinstance(value, (list, tuple)) else value


def form(value: Any) -> Any:
    """A state without the numbers in its tensors, which rounding makes others."""
    if hasattr(value, "tolist"):
        return (str(value.dtype), list(value.shape))
    if isinstance(value, dict):
        return {key: form(member) for key, member in value.items()}
    return [*map(form, value)] if isinstance(value, (list, tuple)) else value


CASES = [("Adam", {}), ("SGD", {"momentum": 0.9}), ("SGD", {}), ("AdamW", {"amsgrad": True})]


@pytest.mark.parametrize(("optimizer", "settings"), CASES)
@pytest.mark.parametrize("flat", [False, True])
def test_states_are_those_of_pytorch(optimizer: str, settings: dict[str, Any], flat: bool) -> None:
    torch = pytest.importorskip("torch")
    from torch.distributed.checkpoint import state_dict as theirs

    found, expected = [], []
    for library, functions, results in ((eager, ours, found), (torch, theirs, expected)):
        options = functions.StateDictOptions(flatten_optimizer_state_dict=flat, ignore_frozen_params=flat)
        model, made = trained(library, optimizer, **settings)
        results += map(form, functions.get_state_dict(model, made, options=options))
    assert found == expected
    assert [*map(list, found)] == [*map(list, expected)]


@pytest.mark.parametrize(("optimizer", "settings"), CASES)
@pytest.mark.parametrize("flat", [False, True])
def test_states_are_restored_through_a_checkpoint(
    tmp_path: Path, optimizer: str, settings: dict[str, Any], flat: bool
) -> None:
    """Into a model that is wrapped, with an optimizer that has no state yet."""
    options = ours.StateDictOptions(flatten_optimizer_state_dict=flat)
    model, made = trained(eager, optimizer, **settings)
    state = dict(zip(("model", "optimizer"), ours.get_state_dict(model, made, options=options), strict=True))
    dcp.save(state, checkpoint_id=tmp_path)
    other, fresh = trained(eager, optimizer, wrap=True, **settings)
    for parameter in other.parameters():
        parameter.data = eager.zeros_like(parameter)
    fresh.state.clear()
    fresh.param_groups[0]["lr"] = 7.0
    fresh.zero_grad()
    empty = dict(zip(("model", "optimizer"), ours.get_state_dict(other, fresh, options=options), strict=True))
    assert empty.keys() == state.keys() and empty["model"].keys() == state["model"].keys()
    dcp.load(empty, checkpoint_id=tmp_path)
    keys = ours.set_state_dict(
        other, fresh, model_state_dict=empty["model"], optim_state_dict=empty["optimizer"], options=options
    )
    assert not keys.missing_keys and not keys.unexpected_keys
    assert plain(fresh.state_dict()) == plain(made.state_dict())
    assert plain([*other.parameters()]) == plain([*model.parameters()])


def test_two_optimizers_in_one_state() -> None:
    def new() -> Any:
        model = eager.nn.Sequential(eager.nn.Linear(2, 3), eager.nn.Linear(3, 1))
        parts = [eager.optim.Adam(model[0].parameters(), 0.1), eager.optim.SGD(model[1].parameters(), 0.2, 0.9)]
        model(eager.ones(1, 2)).sum().backward()
        for optimizer in parts:
            optimizer.step()
        return model, parts

    (model, parts), (other, others) = new(), new()
    state = ours.get_optimizer_state_dict(model, parts)
    assert list(state["state"]) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    ours.set_optimizer_state_dict(other, others, state)
    assert [plain(o.state_dict()) for o in others] == [plain(o.state_dict()) for o in parts]


def test_what_is_wrong_is_said_before_anything_is_changed() -> None:
    model, made = trained(eager, "Adam")
    before = plain(made.state_dict())
    state = ours.get_optimizer_state_dict(model, made)
    del state["state"]["2.weight"]
    with pytest.raises(RuntimeError, match=r"Missing optimizer state for parameter '2\.weight'"):
        ours.set_optimizer_state_dict(model, made, state)
    assert plain(made.state_dict()) == before
    ours.set_optimizer_state_dict(model, made, state, options=ours.StateDictOptions(strict=False))
    for call, error, text in [
        (lambda: ours.get_optimizer_state_dict(model, []), RuntimeError, "Optimizers are not passed in"),
        (lambda: ours.set_optimizer_state_dict(model, made, {}), RuntimeError, "optim state_dict is empty"),
        (lambda: ours.set_model_state_dict(model, {}), RuntimeError, "model state_dict is empty"),
        (lambda: ours.get_model_state_dict(model, options=ours.StateDictOptions(broadcast_from_rank0=True)),
         ValueError, "full_state_dict must be True when broadcast_from_rank0 is True."),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()


def test_names_are_those_without_wrappers_however_deep_these_are() -> None:
    def wrapped(module: Any) -> Any:
        outer = eager.nn.Module()
        outer.add_module("_orig_mod", module)
        return outer

    model = wrapped(eager.nn.Sequential(wrapped(wrapped(eager.nn.Linear(1, 1))), eager.nn.Linear(1, 1)))
    state = ours.get_model_state_dict(model)
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    ours.set_model_state_dict(model, {name: eager.full_like(value, k) for k, (name, value) in enumerate(state.items())})
    assert [parameter.item() for parameter in model.parameters()] == [0, 1, 2, 3]


def test_a_frozen_parameter_is_left_out_by_each_of_its_names() -> None:
    model = eager.nn.Sequential(eager.nn.Linear(2, 2), eager.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    model[0].weight.requires_grad_(False)
    options = ours.StateDictOptions(ignore_frozen_params=True)
    assert list(ours.get_model_state_dict(model, options=options)) == ["0.bias", "1.bias"]
