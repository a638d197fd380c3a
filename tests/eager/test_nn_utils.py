"""`torch.nn.utils`: parametrizations, pruning, fusion: the same program here and in PyTorch, then in both modes."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import compare
import eager
import graphc
from eager import nn
from tests.depth import one_in
from tests.oracle import asked_of_torch

# each program makes a module `m` of torch.nn, and says what it can be called with; x is given
PROGRAMS = {
    "weight_norm": "m = P.weight_norm(nn.Linear(3, 4))",
    "weight_norm, all": "m = P.weight_norm(nn.Linear(3, 4), dim=None)",
    "weight_norm, another dim": "m = P.weight_norm(nn.Linear(3, 4), dim=1)",
    "spectral_norm": "m = P.spectral_norm(nn.Linear(3, 4), n_power_iterations=3)",
    "spectral_norm, bias": "m = P.spectral_norm(nn.Linear(3, 4), 'bias')",
    "spectral_norm, eval": "m = P.spectral_norm(nn.Linear(3, 4)).eval()",
    "orthogonal": "m = P.orthogonal(nn.Linear(3, 3))",
    "orthogonal, cayley": "m = P.orthogonal(nn.Linear(3, 4), orthogonal_map='cayley')",
    "orthogonal, tall": "m = P.orthogonal(nn.Linear(3, 4))",
    "orthogonal, wide": "m = P.orthogonal(nn.Linear(3, 2), orthogonal_map='matrix_exp')",
    "orthogonal, not trivialized": "m = P.orthogonal(nn.Linear(3, 4), use_trivialization=False)",
    "orthogonal, exp, not trivialized":
        "m = P.orthogonal(nn.Linear(3, 3), orthogonal_map='matrix_exp', use_trivialization=False)",
    "orthogonal, assigned": "m = P.orthogonal(nn.Linear(3, 3))\nwith torch.no_grad(): m.weight = torch.eye(3).flip(0)",
    "two on one": "m = P.spectral_norm(P.orthogonal(nn.Linear(3, 3)))",
    "removed": "m = R.remove_parametrizations(P.weight_norm(nn.Linear(3, 4)), 'weight')",
    "removed, one original": "m = R.remove_parametrizations(P.spectral_norm(nn.Linear(3, 4)).eval(), 'weight')",
    "original again": "m = R.remove_parametrizations(P.spectral_norm(nn.Linear(3, 4)), 'weight', False)",
    "cached": "m = P.spectral_norm(nn.Linear(3, 4))\nwith R.cached(): m(x); assert m.weight is m.weight",
    "copied": "m = copy.deepcopy(P.weight_norm(nn.Linear(3, 4)))",
    "transferred": "m = R.transfer_parametrizations_and_params(P.weight_norm(nn.Linear(3, 4)), nn.Linear(3, 4))",
    "own": "m = R.register_parametrization(nn.Linear(3, 3), 'weight', Symmetric())",
    "old weight_norm": "m = U.weight_norm(nn.Linear(3, 4))",
    "old weight_norm, removed": "m = U.remove_weight_norm(U.weight_norm(nn.Linear(3, 4), dim=None))",
    "old spectral_norm": "m = U.spectral_norm(nn.Linear(3, 4), n_power_iterations=2)",
    "old spectral_norm, removed": "m = U.remove_spectral_norm(U.spectral_norm(nn.Linear(3, 4)))",
    "old spectral_norm, transposed":
        "m = nn.Sequential(nn.Unflatten(1, (3, 1)), U.spectral_norm(nn.ConvTranspose1d(3, 2, 2)), nn.Flatten())",
    "states of the old weight_norm": "m = P.weight_norm(nn.Linear(3, 4))\n"
        "m.load_state_dict(U.weight_norm(nn.Linear(3, 4)).state_dict())",
    "identity": "m = D.identity(nn.Linear(3, 4), 'weight')",
    "random_unstructured": "m = D.random_unstructured(nn.Linear(3, 4), 'weight', 0.5)",
    "l1_unstructured": "m = D.l1_unstructured(nn.Linear(3, 4), 'weight', 5)",
    "l1, importance": "m = nn.Linear(3, 4)\nD.l1_unstructured(m, 'weight', 5, importance_scores=m.weight.exp())",
    "random_structured": "m = D.random_structured(nn.Linear(3, 4), 'weight', 2, dim=0)",
    "ln_structured": "m = D.ln_structured(nn.Linear(3, 4), 'weight', 0.3, n=2, dim=1)",
    "custom_from_mask": "m = D.custom_from_mask(nn.Linear(3, 4), 'bias', torch.tensor([1, 0, 1, 0]))",
    "pruned three times": "m = D.l1_unstructured(nn.Linear(3, 4), 'weight', 2)\n"
        "D.ln_structured(m, 'weight', 1, n=1, dim=0)\nD.l1_unstructured(m, 'weight', 0.5)",
    "pruned, removed": "m = D.remove(D.l1_unstructured(nn.Linear(3, 4), 'weight', 5), 'weight')",
    "global": "m = nn.Sequential(nn.Linear(3, 4), D.identity(nn.Linear(4, 2), 'weight'))\n"
        "D.global_unstructured([(m[0], 'weight'), (m[1], 'weight')], D.L1Unstructured, amount=0.4)",
    "fused": "m = U.fuse_linear_bn_eval(nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval())",
    "fused convolution": "m = nn.Sequential(nn.Unflatten(1, (3, 1)),"
        " U.fuse_conv_bn_eval(nn.Conv1d(3, 2, 1, bias=False).eval(), nn.BatchNorm1d(2, affine=False).eval()))",
}  # fmt: skip
ERRORS = {
    "no such tensor": "R.register_parametrization(nn.Linear(3, 4), 'w', nn.Identity())",
    "no tensor": "P.weight_norm(nn.Linear(3, 4), 'in_features')",
    "norm of no tensor": "P.spectral_norm(nn.Linear(3, 4), 'in_features')",
    "other shape": "R.register_parametrization(nn.Linear(3, 4), 'weight', nn.Linear(3, 2))",
    "other dtype": "R.register_parametrization(nn.Linear(3, 4), 'weight', Double())",
    "other shape, second": "R.register_parametrization(P.weight_norm(nn.Linear(3, 4)), 'weight', nn.Linear(3, 2))",
    "no inverse": "R.register_parametrization(nn.Linear(3, 4), 'weight', nn.Identity()).weight = torch.ones(4, 3)",
    "not parametrized": "R.remove_parametrizations(nn.Linear(3, 4), 'weight')",
    "several originals": "R.remove_parametrizations(P.weight_norm(nn.Linear(3, 4)), 'weight', False)",
    "pickled": "__import__('pickle').dumps(P.weight_norm(nn.Linear(3, 4)))",
    "dim": "P.spectral_norm(nn.Linear(3, 4), dim=2)",
    "iterations": "P.spectral_norm(nn.Linear(3, 4), n_power_iterations=0)",
    "map": "P.orthogonal(nn.Linear(3, 4), orthogonal_map='exp')",
    "vector": "P.orthogonal(nn.Linear(3, 4), 'bias')",
    "not invertible": "P.orthogonal(nn.Linear(3, 3), use_trivialization=False).weight = torch.eye(3)",
    "assigned another shape": "P.orthogonal(nn.Linear(3, 3)).weight = torch.eye(4)",
    "old, twice": "U.weight_norm(U.weight_norm(nn.Linear(3, 4)))",
    "old, lazy": "U.weight_norm(nn.LazyLinear(4))",
    "old, not there": "U.remove_weight_norm(nn.Linear(3, 4))",
    "spectral, twice": "U.spectral_norm(U.spectral_norm(nn.Linear(3, 4)))",
    "spectral, not there": "U.remove_spectral_norm(nn.Linear(3, 4))",
    "spectral, None": "U.spectral_norm(nn.Linear(3, 4, bias=False), 'bias')",
    "amount": "D.l1_unstructured(nn.Linear(3, 4), 'weight', 1.5)",
    "amount, negative": "D.l1_unstructured(nn.Linear(3, 4), 'weight', -1)",
    "amount, too many": "D.l1_unstructured(nn.Linear(3, 4), 'weight', 13)",
    "amount, a word": "D.l1_unstructured(nn.Linear(3, 4), 'weight', 'all')",
    "structured, vector": "D.random_structured(nn.Linear(3, 4), 'bias', 1, 0)",
    "structured, dim": "D.ln_structured(nn.Linear(3, 4), 'weight', 1, 2, 2)",
    "importance": "D.l1_unstructured(nn.Linear(3, 4), 'weight', 1, importance_scores=torch.ones(2))",
    "global, structured": "D.global_unstructured([(nn.Linear(3, 4), 'weight')], D.LnStructured, amount=1, n=1)",
    "remove": "D.remove(nn.Linear(3, 4), 'weight')",
    "mask": "D.custom_from_mask(nn.Linear(3, 4), 'weight', torch.ones(2))",
    "fusion": "U.fuse_linear_bn_eval(nn.Linear(3, 4), nn.BatchNorm1d(4))",
    "fusion, sizes": "U.fuse_linear_bn_eval(nn.Linear(3, 4).eval(), nn.BatchNorm1d(3).eval())",
    "skip_init": "U.skip_init(nn.ReLU)",
    "skip_init, no module": "U.skip_init(int)",
}  # fmt: skip
# what differs in the last digits only after an ill-conditioned factorization of random numbers
LOOSE = {"orthogonal, tall", "orthogonal, wide", "orthogonal, cayley", "orthogonal, not trivialized"}


def scope_of(torch):
    """What the programs name, of `torch`, PyTorch or ours."""
    from importlib import import_module

    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    class Double(torch.nn.Module):
        def forward(self, x):
            return x.double()

    utils = f"{torch.__name__}.nn.utils"
    P, R, D = (import_module(f"{utils}.{name}") for name in ("parametrizations", "parametrize", "prune"))
    torch.manual_seed(0)
    x = torch.randn(2, 3)
    return {"torch": torch, "nn": torch.nn, "U": torch.nn.utils, "P": P, "R": R, "D": D, "x": x, "copy": copy,
            "Symmetric": Symmetric, "Double": Double}  # fmt: skip


def module_of(case, torch=eager):
    """The module and the input of a program."""
    scope = scope_of(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        exec(PROGRAMS[case], scope)
    return scope["m"], scope["x"]


def step(m, x):
    """(result, gradients, state, text) after a step forward and back."""
    result = m(x)
    result.square().sum().backward()
    gradients = {name: p.grad for name, p in m.named_parameters() if p.grad is not None}
    return result, gradients, dict(m.state_dict()), repr(m)


def arrays(values):
    return {name: value.detach().numpy() for name, value in values.items()}


@asked_of_torch("case", PROGRAMS)
def test_programs_as_in_pytorch(case):
    import torch

    ours, theirs = step(*module_of(case)), step(*module_of(case, torch))
    close = {"rtol": 2e-3, "atol": 2e-4} if case in LOOSE else {"rtol": 2e-5, "atol": 2e-6}
    np.testing.assert_allclose(ours[0].detach().numpy(), theirs[0].detach().numpy(), **close)
    for mine, other in zip(ours[1:3], theirs[1:3], strict=True):
        assert list(mine) == list(other)
        for name, value in arrays(other).items():
            np.testing.assert_allclose(arrays(mine)[name], value, err_msg=name, **close)
    assert ours[3] == theirs[3]


@pytest.mark.parametrize("case", one_in(3, PROGRAMS))
def test_programs_are_the_same_compiled(case):
    m, x = module_of(case)
    eagerly = step(m, x)
    compiled = graphc.compile(step, backend="numpy")(*module_of(case))
    eager.testing.assert_close(compiled[:3], eagerly[:3])


@asked_of_torch("case", ERRORS)
def test_errors_as_in_pytorch(case):
    import torch

    def message(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            try:
                exec(ERRORS[case], scope_of(torch))
            except Exception as error:
                return f"{type(error).__name__}: {error}".replace("eager.", "torch.")
        return None

    assert message(torch) is not None
    assert message(eager) == message(torch)


@pytest.mark.parametrize("case", ["weight_norm", "spectral_norm, eval", "orthogonal", "pruned three times"])
@pytest.mark.on_numpy
def test_compare_holds_them(case):
    m, x = module_of(case)
    assert compare.check(m, x).ok


def test_an_error_changes_nothing():
    scope = scope_of(eager)
    m, prune = eager.nn.Linear(3, 4), scope["D"]
    before = copy.deepcopy(m.__dict__)
    with pytest.raises(ValueError, match="amount"):
        prune.l1_unstructured(m, "weight", 13)
    with pytest.raises(ValueError, match="shape"):
        scope["R"].register_parametrization(m, "weight", eager.nn.Linear(3, 2))
    assert [*m._parameters] == [*before["_parameters"]]
    assert type(m) is eager.nn.Linear
    prune.l1_unstructured(m, "weight", 2)
    with pytest.raises(ValueError, match="amount"):
        prune.l1_unstructured(m, "weight", 13)
    assert prune.is_pruned(m)
    assert int((m.weight == 0).sum()) == 2


def test_orthogonal_is():
    for case in (case for case in PROGRAMS if case.startswith("orthogonal")):
        w = module_of(case)[0].weight.detach().double().numpy()
        w = w if w.shape[0] >= w.shape[1] else w.T
        np.testing.assert_allclose(w.T @ w, np.eye(w.shape[1]), atol=1e-5, err_msg=case)


def test_spectral_norm_divides_by_the_largest_singular_value():
    m, _ = module_of("spectral_norm")
    for _ in range(40):
        w = m.weight
    assert np.linalg.svd(w.detach().numpy(), compute_uv=False)[0] == pytest.approx(1, abs=1e-5)


def test_fused_layers_do_the_same():
    nn, utils = eager.nn, eager.nn.utils
    for layer, norm, size in ((nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4), (2, 3, 5, 5)),
                              (nn.ConvTranspose2d(3, 4, 2), nn.BatchNorm2d(4), (2, 3, 5, 5)),
                              (nn.Linear(3, 4), nn.BatchNorm1d(4), (2, 3))):  # fmt: skip
        norm(layer(eager.randn(size)))
        pair = nn.Sequential(layer, norm).eval()
        transposed = isinstance(layer, nn.ConvTranspose2d)
        fuse = utils.fuse_linear_bn_eval if isinstance(layer, nn.Linear) else utils.fuse_conv_bn_eval
        fused = fuse(layer, norm, transposed) if len(size) == 4 else fuse(layer, norm)
        x = eager.randn(size)
        eager.testing.assert_close(fused(x), pair(x))


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("share", [0.5, 2.0])
def test_gradients_are_only_made_smaller(order: float, share: float):
    grads = [np.array([[3.0, -4.0]]), np.array(12.0)]
    norm = np.linalg.norm(np.concatenate([g.ravel() for g in grads]), order)
    parameters = [eager.zeros(g.shape, dtype=eager.float64, requires_grad=True) for g in grads]
    for p, g in zip(parameters, grads, strict=True):
        p.grad = eager.tensor(g)
    assert nn.utils.clip_grad_norm_(parameters, share * norm, order).item() == pytest.approx(norm)
    for p, g in zip(parameters, grads, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g * min(share, 1.0), rtol=1e-6)
