"""Values, dtypes and gradients of the function surface, case by case against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import eager
import eager.nn.functional
from tests.eager.function_cases import CASES

torch = pytest.importorskip("torch")


def run(module, function, arrays):
    tensors = [module.tensor(a, requires_grad=True) for a in arrays]
    result = function(module, *tensors)
    if result.requires_grad:
        weights = module.tensor(np.linspace(0.5, 1.5, max(result.numel(), 1)).astype(arrays[0].dtype))
        (result * weights[: result.numel()].reshape(result.shape)).sum().backward()
    return result, [x.grad for x in tensors]


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", CASES)
def test_value_dtype_and_gradients_are_pytorchs(name, dtype):
    shapes, function = CASES[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.normal(size=s).astype(dtype) for s in shapes]
    got, grads = run(eager, function, arrays)
    want, true_grads = run(torch, function, arrays)
    # PyTorch's hard activations divide by a float32 6 also in float64
    coarse = dtype is np.float32 or name.startswith("hards")
    tolerance = {"rtol": 2e-5, "atol": 2e-6} if coarse else {"rtol": 1e-10, "atol": 1e-12}
    # so are its trigamma function and Y Bessel functions: good to nine digits
    if dtype is np.float64 and name.startswith(("digamma", "polygamma", "special_psi", "special_bessel_y")):
        tolerance = {"rtol": 2e-8, "atol": 1e-9}
    assert str(got.dtype) == str(want.dtype)
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), **tolerance)
    for g, true in zip(grads, true_grads, strict=True):
        zeros = np.zeros(())
        np.testing.assert_allclose(
            zeros if g is None else g.numpy(), zeros if true is None else true.numpy(), **tolerance
        )


KINKS = {
    "clamp at the bounds": lambda t: t.clamp(t.tensor([-1.0, 0.0, 1.0], requires_grad=True), -1.0, 1.0),
    "max of ties": lambda t: t.tensor([2.0, 2.0, 1.0], requires_grad=True).max(),
    "max(dim) of ties": lambda t: t.tensor([2.0, 2.0, 1.0], requires_grad=True).max(0).values,
    "std of constants": lambda t: t.tensor([2.0, 2.0], requires_grad=True).std(),
    "norm at zero": lambda t: t.tensor([0.0, 0.0], requires_grad=True).norm(),
    "leaky_relu at zero": lambda t: t.nn.functional.leaky_relu(t.tensor([0.0], requires_grad=True), 0.1),
    "elu, large and zero": lambda t: t.nn.functional.elu(t.tensor([0.0, 1000.0], requires_grad=True)),
    "hardtanh at the bounds": lambda t: t.nn.functional.hardtanh(t.tensor([-1.0, 1.0], requires_grad=True)),
    "prod with a zero": lambda t: t.tensor([0.0, 2.0, 3.0], requires_grad=True).prod(),
    "masked logits": lambda t: t.nn.functional.cross_entropy(
        t.tensor([[0.0, -float("inf"), 1.0]], requires_grad=True), t.tensor([0])),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_subgradients_are_pytorchs(name):
    def leaf_gradient(t):
        leaves = []

        class Recorder:
            nn = t.nn

            def __getattr__(self, attribute):
                return getattr(t, attribute)

            def tensor(self, *args, **kwargs):
                made = t.tensor(*args, **kwargs)
                leaves.append(made)
                return made

        KINKS[name](Recorder()).sum().backward()
        return leaves[0].grad.numpy()

    np.testing.assert_allclose(leaf_gradient(eager), leaf_gradient(torch), rtol=1e-6)


ASSIGNMENTS = {
    "int": lambda t, x, v: x.__setitem__(1, v[0]),
    "slice": lambda t, x, v: x.__setitem__((slice(0, 3, 2), slice(1, 3)), v[:2, :2]),
    "number": lambda t, x, v: x.__setitem__((..., 0), 5.0),
    "rows": lambda t, x, v: x.__setitem__(t.tensor([2, 0]), v[:2]),
    "pairs": lambda t, x, v: x.__setitem__((t.tensor([2, 0]), t.tensor([1, 1])), v[0, :2]),
    "mask": lambda t, x, v: x.__setitem__(x > 0, -1.0),
    "mask values": lambda t, x, v: x.__setitem__(t.tensor([True, False, True]), v[:2]),
    "slice and rows": lambda t, x, v: x.__setitem__((slice(1, None), t.tensor([0, 2])), v[:2, :2]),
    "broadcast": lambda t, x, v: x.__setitem__(slice(1, None), v[0]),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_assignment_is_pytorchs(name, recorded):
    arrays = [np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32) for _ in range(2)]
    results = []
    for t in (eager, torch):
        leaf, value = (t.tensor(a, requires_grad=recorded) for a in arrays)
        x = leaf * 1
        ASSIGNMENTS[name](t, x, value)
        if recorded:
            (x * x).sum().backward()
            grads = [np.zeros((3, 4)) if g is None else g.numpy() for g in (leaf.grad, value.grad)]
        results.append([x.detach().numpy(), *(grads if recorded else ())])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


UPDATES = {
    "add_": lambda t, x, y, z: x.add_(y, alpha=0.3),
    "add_ number": lambda t, x, y, z: x.add_(2.5),
    "sub_": lambda t, x, y, z: x.sub_(y, alpha=2),
    "mul_": lambda t, x, y, z: x.mul_(y),
    "div_": lambda t, x, y, z: x.div_(z),
    "addcmul_": lambda t, x, y, z: x.addcmul_(y, z, value=0.1),
    "addcdiv_": lambda t, x, y, z: x.addcdiv_(y, z, value=-0.1),
    "lerp_": lambda t, x, y, z: x.lerp_(y, 0.1),
    "lerp_ far": lambda t, x, y, z: x.lerp_(y, 0.9),
    "clamp_": lambda t, x, y, z: x.clamp_(-0.3, 0.3),
    "zero_": lambda t, x, y, z: x.zero_(),
    "fill_": lambda t, x, y, z: x.fill_(3.0),
    "copy_": lambda t, x, y, z: x.copy_(y[0]),
    "copy_ double": lambda t, x, y, z: x.copy_(y.double()),
    "masked_fill_": lambda t, x, y, z: x.masked_fill_(y > 0, 7.0),
    "scatter_": lambda t, x, y, z: x.scatter_(1, t.tensor([[0], [1], [2]]), 1.0),
    "index_add_": lambda t, x, y, z: x.index_add_(0, t.tensor([0, 0]), y[:2]),
    "operators": lambda t, x, y, z: x.__iadd__(y).__imul__(z),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", UPDATES)
def test_update_is_pytorchs_and_in_the_same_memory(name, recorded):
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=(3, 4)).astype(np.float32), *rng.uniform(0.5, 2, size=(2, 3, 4)).astype(np.float32)]
    results = []
    for t in (eager, torch):
        leaves = [t.tensor(a, requires_grad=recorded) for a in arrays]
        x = leaves[0] * 1
        before = x.detach()
        assert UPDATES[name](t, x, *leaves[1:]) is x
        np.testing.assert_array_equal(before.numpy(), x.detach().numpy())
        if recorded and x.requires_grad:
            (x * x).sum().backward()
        results.append([x.detach().numpy(), *(np.zeros(()) if p.grad is None else p.grad.numpy() for p in leaves)])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


CREATIONS = {
    "tensor floats": lambda t: t.tensor([[1.5, 2], [3, 4]]),
    "tensor ints": lambda t: t.tensor([1, 2]),
    "tensor bools": lambda t: t.tensor([True, False]),
    "tensor mixed": lambda t: t.tensor([True, 2, 3.5]),
    "tensor complex": lambda t: t.tensor([1j, 2]),
    "tensor empty": lambda t: t.tensor([]),
    "tensor numpy scalar": lambda t: t.tensor(np.float64(1.5)),
    "tensor of numpy": lambda t: t.tensor(np.arange(3, dtype=np.int16)),
    "tensor dtype": lambda t: t.tensor([1.7, -1.7], dtype=t.int64),
    "tensor number": lambda t: t.tensor(3),
    "zeros": lambda t: t.zeros(2, 3),
    "ones": lambda t: t.ones((2, 3), dtype=t.int32),
    "full": lambda t: t.full((2,), 7),
    "full bool": lambda t: t.full((2,), True),
    "zeros_like": lambda t: t.zeros_like(t.ones(2, dtype=t.float64)),
    "full_like": lambda t: t.full_like(t.ones(2, dtype=t.int64), 3),
    "new_zeros": lambda t: t.ones(1, dtype=t.float64).new_zeros(2, 2),
    "arange": lambda t: t.arange(5),
    "arange floats": lambda t: t.arange(0.5, 3, 0.7),
    "arange down": lambda t: t.arange(5, 0, -2),
    "arange dtype": lambda t: t.arange(3, dtype=t.float32),
    "linspace": lambda t: t.linspace(-3, 10, 7),
    "linspace one": lambda t: t.linspace(2, 3, 1),
    "logspace": lambda t: t.logspace(0, 2, 3),
    "eye": lambda t: t.eye(2, 3),
    "tril_indices": lambda t: t.tril_indices(3, 3, -1),
    "nonzero": lambda t: t.nonzero(t.tensor([[0, 1], [2, 0]])),
    "argmax": lambda t: t.tensor([[1.0, 3.0], [5.0, 2.0]]).argmax(),
    "argmax dim": lambda t: t.tensor([[1.0, 3.0], [5.0, 2.0]]).argmax(1, keepdim=True),
    "argmin keep": lambda t: t.tensor([[1.0, 3.0], [5.0, 2.0]]).argmin(keepdim=True),
    "any": lambda t: t.tensor([[0, 1], [0, 0]]).any(1),
    "all": lambda t: t.tensor([[0, 1], [1, 1]]).all(),
    "count_nonzero": lambda t: t.tensor([[0, 1], [1, 1]]).count_nonzero(0),
    "sum of bools": lambda t: t.tensor([True, True]).sum(),
    "sum of bytes": lambda t: t.tensor([200, 100], dtype=t.uint8).sum(),
    "int division": lambda t: t.div(t.tensor([7, -7, 6]), 2, rounding_mode="trunc"),
    "int clamp": lambda t: t.tensor([1, 5]).clamp(max=3),
    "int clamp by float": lambda t: t.tensor([1, 5]).clamp(min=1.5),
    "int power": lambda t: t.tensor([1, 5]) ** 2,
    "bool to float": lambda t: t.tensor([True]).float(),
    "one_hot": lambda t: t.nn.functional.one_hot(t.tensor([0, 2])),
    "isclose": lambda t: t.isclose(
        t.tensor([1.0, float("inf"), float("nan")]), t.tensor([1.0 + 1e-7, float("inf"), float("nan")])),
    "cat promotes": lambda t: t.cat([t.tensor([1]), t.tensor([1.5])]),
    "where numbers": lambda t: t.where(t.tensor([True, False]), 1, 2),
    "max of ints": lambda t: t.tensor([[1, 3], [5, 2]]).max(1).values,
    "isclose nan": lambda t: t.isclose(t.tensor([float("nan")]), t.tensor([float("nan")]), equal_nan=True),
    "one element std": lambda t: t.ones(1).var(correction=0),
}  # fmt: skip


@pytest.mark.parametrize("name", CREATIONS)
def test_results_without_gradient_are_pytorchs_to_the_last_bit(name):
    got, want = CREATIONS[name](eager), CREATIONS[name](torch)
    assert str(got.dtype) == str(want.dtype)
    x, y = got.numpy(), want.numpy()
    if (
        x.dtype.kind == "f" and y.size
    ):  # where PyTorch multiplies and adds at once, and where not, its processor decides
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=0, atol=float(np.finfo(x.dtype).eps * np.abs(y).max()))
    else:
        np.testing.assert_array_equal(x, y, strict=True)
