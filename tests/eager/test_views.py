"""Views and writes through them: against PyTorch where it is installed, and against finite differences."""

# ruff: noqa: E501  (tables of one-line programs)

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from tests.oracle import asked_of_torch, torch_or_skip

SHAPES = {
    "view": lambda t: t.view(6, 4), "reshape": lambda t: t.reshape(4, 6), "transpose": lambda t: t.transpose(0, 2),
    "permute": lambda t: t.permute(2, 0, 1), "squeeze": lambda t: t[:1].squeeze(), "unsqueeze": lambda t: t.unsqueeze(1),
    "flatten": lambda t: t.flatten(), "ravel": lambda t: t.ravel(), "narrow": lambda t: t.narrow(1, 1, 2),
    "select": lambda t: t.select(1, 2), "slice": lambda t: t[:, 1:], "step": lambda t: t[..., ::2], "int": lambda t: t[1],
    "none": lambda t: t[:, None], "expand": lambda t: t[:1].expand(4, 3, 4), "diagonal": lambda t: t.diagonal(1, 1, 2),
    "unfold": lambda t: t.unfold(2, 2, 1), "movedim": lambda t: t.movedim(0, 2), "mT": lambda t: t.mT,
    "unflatten": lambda t: t.unflatten(2, (2, 2)), "split": lambda t: t.split(2, 2)[1], "chunk": lambda t: t.chunk(2, 1)[0],
    "unbind": lambda t: t.unbind(1)[1], "detach": lambda t: t.detach(), "view_as": lambda t: t.view_as(t),
    "as_strided": lambda t: t.as_strided((2, 2), (1, 5), 3), "swapaxes": lambda t: t.swapaxes(0, 1),
    "tensor_split": lambda t: t.tensor_split(2, 2)[0], "T": lambda t: t[0].T, "t": lambda t: t[0].t(),
    "expand_as": lambda t: t[:1].expand_as(t), "ellipsis": lambda t: t[...], "contiguous": lambda t: t.contiguous(),
    "transposed reshape": lambda t: t.transpose(0, 1).reshape(6, 4), "transposed flatten": lambda t: t.mT.flatten(),
    "transposed contiguous": lambda t: t.mT.contiguous(), "advanced": lambda t: t[[0, 1]], "mask": lambda t: t[t > 3],
    "clone": lambda t: t.clone(), "repeat": lambda t: t.repeat(1, 1, 1), "flip": lambda t: t.flip(0),
    "roll": lambda t: t.roll(1, 0), "tril": lambda t: t.tril(), "index_select": lambda t: t.index_select(0, t[0, 0, :1].long()),
    "diag": lambda t: t[0].diag(), "to": lambda t: t.to(t.dtype), "mixed index": lambda t: t[1, [0, 2]], "row of row": lambda t: t[1][2],
}  # fmt: skip


@asked_of_torch("name", SHAPES)
def test_view_or_copy_as_pytorch(name):
    def describe(module):
        base = module.arange(24.0).reshape(2, 3, 4).clone()
        result = SHAPES[name](base)
        shares = result.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
        return {
            "values": result.tolist(), "shares": shares, "same": result is base, "has a base": result._base is not None,
            "contiguous": result.is_contiguous(), "stride": result.stride() if result.numel() else None,
            "distance": result.data_ptr() - base.data_ptr() if shares else None, "offset": result.storage_offset(),
        }  # fmt: skip

    assert describe(torch) == describe(torch_or_skip())


# programs on a (3, 4) tensor that the gradient flows into, a vector of 3 and one of 4; each writes in place


def overlapping(m, u, v):
    m[:2].mul_(2.0)
    m[1:].mul_(m[:2].clone())
    m[:, 1:3].add_(u[:, None])


def views_of_views(m, u, v):
    row = m[1]
    part = row[1:]
    part.mul_(v[1:])
    row.add_(1.0)
    part[0] = u[0] * u[1]


def transposed(m, u, v):
    m.t()[1].mul_(u)
    m.T[2:].copy_(v[2:, None] * u)
    m.t().diagonal().add_(u)


def base_after_views(m, u, v):
    row, column = m[0], m[:, 0]
    m.mul_(v)
    row.add_(column[1])
    m.cos_()
    column.mul_(u)


def everything_set(m, u, v):
    m[0] = v
    m[:, 1] = u
    m[1, 2] = u[0] * v[0]
    m[..., 3] = 2.0
    m[1:, ::2] = u[:2, None]
    m[[0, 2]] = v * 2
    m[[0, 1], [3, 0]] = u[:2]
    m[None, 2] = v[None]


def masks(m, u, v):
    m[m > 0.5] = 0.25
    m[0][v > 0] *= 3.0
    m.masked_fill_(m < -0.5, 1.5)
    m[:, 0].masked_fill_(u > 0, 0.5)


def chains(m, u, v):
    for k in range(4):
        m[:, k:].mul_(v[k])
        m[k // 2 :].sub_(v[k] * 0.5)
    m.t()[2].sub_(u)
    m.unsqueeze(1).view(3, 2, 2)[:, 1].mul_(2.0)


def regions(m, u, v):
    m.narrow(1, 1, 2).sin_()
    m.unsqueeze(0)[0, 1].mul_(v)
    m.as_strided((3,), (5,)).mul_(u)
    m.diagonal(1).zero_()
    m.unfold(1, 2, 2)[0, 1].add_(v[:2])


def scattered(m, u, v):
    m.index_add_(0, m.new_zeros(1).long(), v[None])
    m.select(0, 2).index_copy_(0, (v[:2] * 0).long() + m.new_tensor([1, 3]).long(), u[:2])
    m.index_fill_(1, m.new_zeros(1).long() + 2, 0.5)


PROGRAMS = [
    overlapping,
    views_of_views,
    transposed,
    base_after_views,
    everything_set,
    masks,
    chains,
    regions,
    scattered,
]
BASES = {
    "contiguous": lambda a: a * 1.0, "transposed": lambda a: (a.t() * 1.0).contiguous().t(),
    "strided": lambda a: (a.repeat(1, 2) * 1.0)[:, :4], "inside": lambda a: (a.repeat(2, 1) * 1.0).view(2, 3, 4)[1],
}  # fmt: skip


def starts():
    rng = np.random.default_rng(7)
    return [rng.uniform(-1, 1, shape) for shape in ((3, 4), (3,), (4,))]


def run(module, program, base, values, wanted=False):
    a, u, v = (module.tensor(x.tolist(), dtype=module.float64, requires_grad=True) for x in values)
    m = BASES[base](a)
    program(m, u, v)
    weights = module.arange(1.0, 13.0, dtype=module.float64).reshape(3, 4)
    total = (m * m * weights).sum()
    if not wanted:
        return total.item()
    grads = module.autograd.grad(total, (a, u, v), allow_unused=True)
    return m.tolist(), [None if g is None else g.tolist() for g in grads]


@asked_of_torch("base", BASES)
@asked_of_torch("program", PROGRAMS, ids=lambda f: f.__name__)
def test_writes_as_pytorch(program, base):
    oracle = torch_or_skip()
    values, grads = run(torch, program, base, starts(), True)
    expected, expected_grads = run(oracle, program, base, starts(), True)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    for g, e in zip(grads, expected_grads, strict=True):
        assert (g is None) == (e is None)
        if g is not None:
            np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_writes_by_finite_differences(program, base):
    values, step = starts(), 1e-6
    _, grads = run(torch, program, base, values, True)
    for x, g in zip(values, grads, strict=True):
        for place in np.ndindex(x.shape):
            old = x[place]
            x[place] = old + step
            high = run(torch, program, base, values)
            x[place] = old - step
            low = run(torch, program, base, values)
            x[place] = old
            assert (0.0 if g is None else np.array(g)[place]) == pytest.approx(
                (high - low) / (2 * step), abs=1e-5, rel=1e-5
            )


@pytest.mark.parametrize("module_of", [lambda: torch, torch_or_skip])
def test_second_derivatives_through_writes(module_of):
    module = module_of()
    a = module.tensor([0.5, -1.0, 2.0], dtype=module.float64, requires_grad=True)
    m = a * 1.0
    m[1:].mul_(m[:2].clone())
    m[0] = m[2].clone() * a[1]
    (g,) = module.autograd.grad((m * m * m).sum(), a, create_graph=True)
    (h,) = module.autograd.grad((g * g).sum(), a)

    def gradient(x):
        # m = [(a2 a1) a1, a1 a0, a2 a1]
        a0, a1, a2 = x
        m0, m1, m2 = a2 * a1 * a1, a1 * a0, a2 * a1
        return np.array([
            3 * m1**2 * a1, 6 * m0**2 * a2 * a1 + 3 * m1**2 * a0 + 3 * m2**2 * a2, 3 * m0**2 * a1**2 + 3 * m2**2 * a1,
        ])  # fmt: skip

    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(g.tolist(), gradient(x), rtol=1e-12)
    step = 1e-6
    for k in range(3):
        d = np.eye(3)[k] * step
        slope = ((gradient(x + d) ** 2).sum() - (gradient(x - d) ** 2).sum()) / (2 * step)
        assert h.tolist()[k] == pytest.approx(slope, rel=1e-6)


def test_a_refused_write_changes_nothing():
    x = torch.ones(2, 3, requires_grad=True) * 1
    row = x[0]
    version, node = x._version, x.grad_fn
    for write in (
        lambda: row.add_(torch.ones(4)), lambda: row.__setitem__(5, 1.0), lambda: x.__setitem__((0, [0, 9]), 1.0),
        lambda: x.copy_(torch.ones(3, 3)), lambda: x.unbind()[0].zero_(), lambda: row.mul_(1j),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, IndexError)):
            write()
    assert x.tolist() == [[1.0] * 3] * 2 and x._version == version and x.grad_fn is node


EXPANDED_WRITES = {  # of torch.zeros(2) seen as [3, 2]: what it is then, or None if PyTorch refuses to write it
    "fill_": (lambda v: v.fill_(1), [1, 1]), "zero_": (lambda v: v.zero_(), [0, 0]),
    "row": (lambda v: v[1].add_(1), [1, 1]), "row set": (lambda v: v.__setitem__(1, 1.0), [1, 1]),
    "element": (lambda v: v.__setitem__((0, 0), 1.0), [1, 0]), "masked_fill_": (lambda v: v.masked_fill_(v == 0, 1.0), [1, 1]),
    "mask": (lambda v: v.__setitem__(v == 0, 1.0), [1, 1]), "rows": (lambda v: v.__setitem__([0, 1], 1.0), [1, 1]),
    "no repeats": (lambda v: v[:1].add_(1), [1, 1]), "view of a row": (lambda v: v[2][:1].mul_(0).add_(4), [4, 0]),
    "add_": (lambda v: v.add_(1), None), "mul_": (lambda v: v.mul_(2), None), "exp_": (lambda v: v.exp_(), None),
    "copy_": (lambda v: v.copy_(torch.ones(3, 2).to(v)), None), "all": (lambda v: v.__setitem__(slice(None), 1.0), None),
    "two rows": (lambda v: v.__setitem__(slice(0, 2), 1.0), None), "normal_": (lambda v: v.normal_(), None),
    "uniform_": (lambda v: v.uniform_(), None), "clamp_": (lambda v: v.clamp_(0, 1), None), "lerp_": (lambda v: v.lerp_(v, 0.5), None),
    "cumsum_": (lambda v: v.cumsum_(0), None), "addcmul_": (lambda v: v.addcmul_(v, v), None),
    "relu_": (lambda v: v.relu_(), None), "square_": (lambda v: v.square_(), None), "bernoulli_": (lambda v: v.bernoulli_(0.5), None),
}  # fmt: skip


def expansions(torch):
    """Ways from a tensor of two elements to a view of it that repeats them three times."""
    return [
        lambda x: x.expand(3, 2), lambda x: torch.broadcast_to(x, (3, 2)), lambda x: x.expand_as(torch.zeros(3, 2)),
        lambda x: torch.broadcast_tensors(x, torch.zeros(3, 1))[0], lambda x: x.as_strided((3, 2), (0, 1)),
        lambda x: x.view(2, 1).t().expand(3, 2),
    ]  # fmt: skip


def after_writing(torch, write, expand):
    x = torch.zeros(2)
    try:
        write(expand(x))
    except RuntimeError as error:
        assert "more than one element of the written-to tensor" in str(error)
        assert x.tolist() == [0, 0]
        return None
    return x.tolist()


@pytest.mark.parametrize("name", EXPANDED_WRITES)
def test_writes_to_expanded_tensors(name):
    write, expected = EXPANDED_WRITES[name]
    for expand in expansions(torch):
        assert after_writing(torch, write, expand) == expected


@pytest.mark.filterwarnings("ignore:Use of")
@asked_of_torch("name", [name for name in EXPANDED_WRITES if name != "copy_"])
def test_writes_to_expanded_tensors_are_pytorchs(name):
    witness = torch_or_skip()
    write, expected = EXPANDED_WRITES[name]
    for expand in expansions(witness):
        assert after_writing(witness, write, expand) == expected


def test_what_is_expanded_to_its_own_shape_is_written():
    x = torch.zeros(2, 2)
    x.expand(2, 2).fill_(1)
    x.expand(1, 2, 2).add_(1)
    torch.broadcast_tensors(x.t(), torch.zeros(1))[0][0].mul_(5)
    assert x.tolist() == [[10, 2], [10, 2]]


def test_history_of_writes_to_rows_of_expanded_tensors():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    y.expand(3, 2)[1].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3] and y.tolist() == [3, 3]


def test_memory_that_is_nobodys_to_write_is_copied():
    given = np.ones(2)
    given.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        t = torch.from_numpy(given)
    t.add_(1)
    assert t.tolist() == [2, 2] and given.tolist() == [1, 1]


def test_strides_of_empty_results_are_those_of_new_tensors():
    import eager

    for shape, strides in (((0,), (1,)), ((0, 3), (3, 1)), ((3, 0), (1, 1)), ((2, 0, 3), (3, 3, 1))):
        assert (eager.zeros(shape) + 1).stride() == eager.zeros(shape).stride() == strides


def test_views_of_a_view_that_has_been_made_a_leaf():
    base = torch.arange(12.0)
    leaf = base.view(4, 3).requires_grad_()
    for write in (lambda: leaf[0].sub_(1), lambda: leaf[0][1:].mul_(2), lambda: leaf.t().zero_()):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            write()
    w = torch.ones(4, 3, requires_grad=True)
    for write in (lambda: leaf.detach().mul_(w), lambda: base.view(4, 3).mul_(w), lambda: leaf.data.mul_(2)):
        write()
    assert leaf.detach().sum().item() == 132


@pytest.mark.parametrize(
    "cut", [lambda t: t.unbind(0), lambda t: t.split(1, 0), lambda t: t.chunk(2, 1), lambda t: t.unbind(2)]
)
@pytest.mark.parametrize("used", [slice(None), slice(1, None)])
def test_pieces_give_back_a_gradient_laid_out_as_the_whole(used: slice, cut: Callable[[Any], Any]) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
    whole, seen = x.permute(2, 0, 1), []
    whole.register_hook(seen.append)
    weights = torch.arange(1.0, 25.0).reshape(4, 2, 3)
    pieces = list(zip(cut(whole), cut(weights), strict=True))[used]
    sum((a * b).sum() for a, b in pieces).backward()
    expected = torch.zeros(4, 2, 3)
    for part, w in list(zip(cut(expected), cut(weights), strict=True))[used]:
        part.detach().copy_(w)
    assert seen[0].stride() == whole.stride()
    assert torch.equal(seen[0], expected)
    assert torch.equal(x.grad, expected.permute(1, 2, 0))


@pytest.mark.parametrize(
    "change",
    [lambda y: y.unsqueeze_(0), lambda y: y.t_(), lambda y: y.squeeze_(), lambda y: y.transpose_(0, 1)],
    ids=["unsqueeze_", "t_", "squeeze_", "transpose_"],
)
@pytest.mark.parametrize("of", ["a result", "a view", "a leaf"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.on_numpy
def test_what_is_looked_at_in_another_way_without_recording_keeps_its_history(change, of, compiled):
    def f(x):
        y = {"a result": lambda: x * 1, "a view": lambda: x[:], "a leaf": lambda: x.detach().requires_grad_()}[of]()
        leaf = y.is_leaf
        with torch.no_grad():
            change(y)
        assert y.requires_grad and y.is_leaf is leaf
        return (y * 2).sum()

    x = torch.ones(2, 1, requires_grad=True)
    total = (graphc.compile(f) if compiled else f)(x)
    assert total.requires_grad
    if of != "a leaf":
        total.backward()
        assert x.grad.tolist() == [[2.0], [2.0]]


def test_bits_are_no_view_to_autograd():
    y = torch.ones(2, requires_grad=True) * 1
    bits = y.view(torch.int32)
    y.mul_(2)
    assert bits.tolist() == [2**30] * 2 and not bits.requires_grad and not bits._is_view()


@pytest.mark.parametrize(
    ("index", "what"),
    [
        ("x > 0", "a leaf"), ("...", "a leaf"), ("slice(None)", "a leaf"), ("slice(0, 2)", "a leaf"), ("[0, 1]", "a leaf"),
        ("torch.tensor([0])", "a leaf"), ("(slice(None), [1])", "a leaf"),
        ("0", "a view of a leaf"), ("torch.tensor(0)", "a view of a leaf"), ("slice(1)", "a view of a leaf"),
        ("None", "a view of a leaf"), ("True", "a view of a leaf"), ("(0, [1])", "a view of a leaf"),
        ("(..., 0)", "a view of a leaf"),
    ],
)  # fmt: skip
def test_what_is_assigned_to_in_a_leaf_is_named_as_in_pytorch(index: str, what: str):
    def message(torch: Any) -> str:
        x = torch.ones(2, 2, requires_grad=True)
        with pytest.raises(RuntimeError) as error:
            x[eval(index, {"x": x, "torch": torch, "slice": slice})] = 1.0
        return str(error.value)

    assert message(torch).startswith(f"{what} Variable that requires grad is being used in an in-place")
    if find_spec("torch"):
        assert message(torch) == message(torch_or_skip())


def test_a_view_with_memory_of_its_own_is_written_alone():
    leaf = torch.ones(2, requires_grad=True)
    base = torch.zeros(2, 2)
    view = base[1]
    view.data = torch.full((2,), 5.0)
    view.add_(leaf)
    assert view.tolist() == [6.0, 6.0]
    assert base.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    view.sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0]
    base = torch.zeros(2, 2)
    view = base[1]
    base.data = torch.full((2, 2), 5.0)
    base.add_(leaf)
    assert view.tolist() == [0.0, 0.0]
    assert not view.requires_grad


def test_a_view_of_the_same_dtype_is_one_of_bits():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    bits = x.view(torch.float32)
    assert (bits.requires_grad, bits.is_leaf, bits._base) == (False, True, None)
    bits.mul_(2)
    assert x.tolist() == [2.0, 4.0]


def test_the_transpose_of_a_number_is_a_view():
    x = torch.tensor(2.0, requires_grad=True)
    for y in (x.transpose(0, -1), x.swapaxes(0, 0)):
        assert y is not x and y._base is x and y.grad_fn.name() == "TransposeBackward0"


def test_parts_that_are_no_views_stay_when_the_whole_is_written():
    whole = torch.arange(4.0, requires_grad=True) * 1
    first, _ = whole.unsafe_chunk(2)
    whole.add_(1)
    assert first.tolist() == [1.0, 2.0]


@asked_of_torch("size", [2, 3])
def test_a_saved_tensor_that_is_set_to_other_memory_is_missed(size):
    def told(module):
        x = module.ones(2, requires_grad=True)
        y = x * x
        with module.no_grad():
            x.set_(module.zeros(size))
        with pytest.raises(RuntimeError) as error:
            y.sum().backward()
        return str(error.value).partition(":")[0]

    assert told(torch) == told(torch_or_skip())
