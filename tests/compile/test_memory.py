"""Memory and compiled functions: which tensor shows what, and who else sees what is written."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc
from graphc.errors import CaptureError

pytestmark = pytest.mark.on_numpy


def grid() -> Any:
    return torch.arange(6.0).view(2, 3)


def agrees(function: Callable[..., Any], *makers: Callable[[], Any], calls: int = 2) -> None:
    """`function` gives, and does to the tensors that `makers` make, the same in both modes, call after call."""
    ours, theirs = [make() for make in makers], [make() for make in makers]
    compiled = graphc.compile(function)
    for _ in range(calls):
        assert repr(compiled(*ours)) == repr(function(*theirs))
        assert repr(ours) == repr(theirs)


# --- functions that change which part of its memory a tensor shows

RESHAPERS: dict[str, Callable[[Any], Any]] = {
    "squeeze_": lambda y: y.squeeze_(),
    "unsqueeze_": lambda y: y.unsqueeze_(0),
    "t_": lambda y: y.t_(),
    "transpose_": lambda y: y.transpose_(0, 1),
    "swapaxes_": lambda y: y.swapaxes_(0, 1),
    "as_strided_": lambda y: y.as_strided_((2,), (1,), 1),
    "resize_ to less": lambda y: y.resize_(3),
    "resize_ to more": lambda y: y.resize_(2, 5),
    "resize_as_": lambda y: y.resize_as_(torch.ones(2)),
    "set_": lambda y: y.set_(torch.ones(2)),
    "set_ to a part": lambda y: y.set_(torch.arange(5.0), 1, (2, 2), (1, 1)),
    "set_ to nothing": lambda y: y.set_(),
    "detach_": lambda y: y.detach_(),
}
REACHED = [name for name in RESHAPERS if name not in ("squeeze_", "detach_")]  # those do not change `grid()`


@pytest.mark.parametrize("name", RESHAPERS)
def test_tensors_that_a_program_has_made_change_their_shape_in_place(name: str) -> None:
    def program(x: Any) -> Any:
        y = x * 2
        before = y[:]
        RESHAPERS[name](y)
        y.add_(1)
        return y, before

    agrees(program, grid)


@pytest.mark.parametrize("name", REACHED)
def test_tensors_from_before_the_call_keep_theirs(name: str) -> None:
    x = grid()
    with pytest.raises(CaptureError, match=rf"{name.partition(' ')[0].replace('_as', '')}.*test_memory.py.*\n.*Remedy"):
        graphc.compile(lambda x: RESHAPERS[name](x).sum())(x)
    with pytest.raises(CaptureError):
        graphc.compile(lambda: RESHAPERS[name](x).sum())()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_gradient_from_before_the_call_keeps_its_shape() -> None:
    w = torch.ones(2, 3, requires_grad=True)
    w.sum().backward()
    with pytest.raises(CaptureError, match="t_ "):
        graphc.compile(lambda: w.grad.t_().sum())()
    assert w.grad.shape == (2, 3)


def test_a_shape_that_stays_is_no_change() -> None:
    agrees(lambda x: x.squeeze_().add_(1), grid)


def test_history_through_a_change_of_shape() -> None:
    w = torch.ones(3, requires_grad=True)

    @graphc.compile
    def program(x: Any) -> Any:
        y = (x * w).unsqueeze_(0)
        y.mul_(w)
        y.sum().backward()
        return y.shape

    assert program(grid()) == (1, 2, 3)
    assert w.grad.tolist() == [6, 10, 14]


def test_outputs_of_another_size() -> None:
    agrees(lambda x: torch.add(x, 1, out=torch.empty(0)), grid)
    agrees(lambda x: torch.ones(3, out=torch.empty(0)) + x, grid)
    out = torch.empty(0)
    with pytest.raises(CaptureError, match="ones "):
        graphc.compile(lambda x: torch.ones(3, out=out) + x)(grid())
    assert out.shape == (0,)


# --- histories behind .data and detach()


def frozen() -> Any:
    return torch.nn.Parameter(torch.ones(2), requires_grad=False)


def trained() -> Any:
    return torch.ones(2, requires_grad=True)


def add_to_data(w: Any, a: Any) -> Any:
    w.data += a * 2
    return w.requires_grad, w.grad_fn, w.is_leaf


def put_into_data(w: Any, a: Any) -> Any:
    w.data[0] = a[0] * 2
    return w.requires_grad, w.is_leaf


def gradient_of_detached(w: Any, a: Any) -> Any:
    d = w.detach()
    part = d[:1]
    part.mul_(a[:1] * 3)
    d.mul_(a)
    (d.sum() + (part * part).sum()).backward()
    return w.requires_grad, part.requires_grad, d.requires_grad, a.grad


def overwritten(w: Any, a: Any) -> Any:
    d = w.data
    d.mul_(a)
    d.copy_(torch.zeros(2))
    d.sum().backward()
    return a.grad


def used_after(w: Any, a: Any) -> Any:
    y = w * 1
    d = y.detach()
    d += a * 2
    (y * y * a).sum().backward()
    return a.grad, y.requires_grad


@pytest.mark.parametrize("program", [add_to_data, put_into_data, gradient_of_detached, overwritten, used_after])
@pytest.mark.parametrize("weight", [frozen, trained])
def test_what_is_written_behind_autograd_gives_no_history(program: Callable[..., Any], weight: Any) -> None:
    agrees(program, weight, trained)


def test_merging_low_rank_updates() -> None:
    base = torch.nn.Linear(2, 2)
    base.requires_grad_(False)
    a, b = torch.nn.Parameter(torch.ones(1, 2)), torch.nn.Parameter(torch.ones(2, 1))
    expected = base.weight.detach() + 1

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base, self.merged = base, False

        def merge(self) -> None:
            self.base.weight.data += b @ a
            self.merged = True

    layer = Layer()
    graphc.compile(layer.merge)()
    assert layer.merged and not base.weight.requires_grad
    assert torch.equal(base.weight, expected)


def test_histories_that_a_graph_cannot_tell_apart_are_refused() -> None:
    def returned(w: Any, a: Any) -> Any:
        d = w.data
        d += a
        return d

    def written_otherwise(w: Any, a: Any) -> Any:
        d = w.data
        d += a
        w.data.add_(1)
        return d.sum()

    for program in (returned, written_otherwise):
        w = frozen()
        with pytest.raises(CaptureError, match="detached"):
            graphc.compile(program)(w, trained())
        assert w.tolist() == [1, 1]


# --- gradients from before the call


@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_gradient_that_is_dropped_has_been_added_to(set_to_none: bool) -> None:
    def states(compile: Callable[[Any], Any]) -> list[Any]:
        w = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.125)

        def step() -> None:
            (w * 2).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=set_to_none)

        run, found = compile(step), list[Any]()
        for _ in range(3):
            (w * 3).sum().backward()
            held, view = w.grad, w.grad[:]
            run()
            found.append((held.tolist(), view.tolist(), w.tolist(), w.grad is None, w.grad is held))
        return found

    assert states(graphc.compile) == states(lambda f: f)


def test_a_gradient_that_is_replaced_has_been_written() -> None:
    def states(compile: Callable[[Any], Any]) -> list[Any]:
        w = torch.ones(2, requires_grad=True)

        def step() -> Any:
            w.grad.mul_(4)
            w.grad = w.grad + 1
            w.grad.mul_(2)

        run, found = compile(step), list[Any]()
        w.grad = torch.ones(2)
        for _ in range(3):
            held = w.grad
            run()
            found.append((held.tolist(), w.grad.tolist(), held is w.grad))
        return found

    assert states(graphc.compile) == states(lambda f: f)


def test_a_gradient_that_is_dropped_has_been_added_to_when_the_function_raises() -> None:
    w = torch.ones(1, requires_grad=True)
    held = w.grad = torch.ones(1)

    def program() -> None:
        (w * 2).sum().backward()
        w.grad = None
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        graphc.compile(program)()
    assert held.tolist() == [3] and w.grad is None


# --- tensor.data = value


def replaced(w: Any) -> Any:
    w.data = w.data * 5
    return w.sum()


def written_then_replaced(w: Any) -> Any:
    w.data.add_(1)
    w.data = w.data * 5
    w.data.sub_(1)
    return w[:1].sum()


def replaced_twice(w: Any) -> Any:
    w.data = w.data * 5
    w.data = w.data + 1
    return w.tolist()


def replaced_by_a_constant(w: Any) -> Any:
    w.data = torch.zeros(2)
    return w.detach()


def replaced_with_gradients(w: Any) -> Any:
    y = (w * w).sum()
    w.data = w * 3
    (y + (w * w).sum()).backward()
    return w.grad, w.is_leaf


DATA = [replaced, written_then_replaced, replaced_twice, replaced_by_a_constant, replaced_with_gradients]


@pytest.mark.parametrize("program", DATA)
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.filterwarnings("ignore:.* is traced and compiled again for each value:UserWarning")
@pytest.mark.filterwarnings("ignore:.* is compiled for 2 of the values:UserWarning")
def test_memory_that_a_tensor_leaves_stays_as_it_is(program: Any, captured: bool, requires_grad: bool) -> None:
    if program is replaced_with_gradients and not requires_grad:
        return

    def states(compile: Callable[[Any], Any]) -> list[Any]:
        w = torch.ones(2)
        view, array = w[:1], w.numpy()
        w.requires_grad_(requires_grad)
        run = compile((lambda: program(w)) if captured else program)
        found = list[Any]()
        for _ in range(3):
            old = w.data
            result = run() if captured else run(w)
            result = result.detach() if isinstance(result, torch.Tensor) else result
            found.append(tuple(map(repr, (result, old, view, array, w, w.grad))))
        return found

    assert states(graphc.compile) == states(lambda f: f)


@pytest.mark.parametrize("before", [False, True])
def test_others_of_the_memory_that_a_tensor_leaves(before: bool) -> None:
    def states(compile: Callable[[Any], Any]) -> list[Any]:
        whole = torch.ones(4)
        w, other = whole[:3], whole[1:]

        def program() -> Any:
            if before:
                w.add_(1)
            w.data = w * 2
            w.add_(1)
            other.mul_(10)
            return other * 1

        run, found = compile(program), list[Any]()
        for _ in range(3):
            found.append((run().tolist(), w.tolist(), other.tolist(), whole.tolist()))
        return found

    assert states(graphc.compile) == states(lambda f: f)


def test_memory_that_a_tensor_has_left_when_the_function_raises() -> None:
    w = torch.ones(2)
    old = w.data

    def program() -> None:
        w.add_(1)
        w.data = w * 2
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        graphc.compile(program)()
    assert (w.tolist(), old.tolist()) == ([4, 4], [2, 2])


# --- other ways to another tensor over the same memory

SQUARE = torch.arange(4.0).view(2, 2)
ALIASES: dict[str, Callable[[Any], Any]] = {
    "Parameter": lambda x: torch.nn.Parameter(x, requires_grad=False),
    "Parameter that requires grad": torch.nn.Parameter,
    "copy": copy.copy,
    "einsum of all dims": lambda x: torch.einsum("ij", x),
    "einsum of dims in another order": lambda x: torch.einsum("ij->ji", x),
    "einsum of a diagonal": lambda x: torch.einsum("ii->i", x),
    "einsum of a sum": lambda x: torch.einsum("ij->i", x),
}


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("size", [2, 10])
def test_writes_to_aliases_are_seen(name: str, size: int) -> None:
    def program(x: Any) -> Any:
        made = ALIASES[name](x)
        with torch.no_grad():
            made.fill_(7)
        return x * 1, made, type(made)

    agrees(program, lambda: torch.arange(1.0 * size * size).view(size, size))


def test_an_einsum_that_only_permutes_is_a_view() -> None:
    x = SQUARE.clone().requires_grad_() * 1
    y = torch.einsum("ij->ji", x)
    assert y._is_view() and y.grad_fn.name() == "PermuteBackward0"
    y[0].mul_(3)
    assert x.tolist() == [[0, 1], [6, 3]] and x.grad_fn.name() == "torch::autograd::CopySlices"


def test_parameters_made_inside_are_parameters() -> None:
    def program(x: Any) -> Any:
        made = torch.nn.Parameter(x * 2)
        (made * made).sum().backward()
        return made, made.grad, torch.nn.Parameter(x), torch.nn.Buffer(x * 1)

    compiled = graphc.compile(program)
    for _ in range(2):
        made, grad, shown, buffer = compiled(SQUARE)
        assert type(made) is type(shown) is torch.nn.Parameter and made.is_leaf and made.requires_grad
        assert torch.equal(grad, 4 * SQUARE) and shown.data_ptr() == SQUARE.data_ptr() and torch.equal(buffer, SQUARE)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize(
    ("write", "message"),
    [(lambda x: torch.from_numpy(x.numpy()).fill_(7), "shares memory with an ndarray"),
     (lambda x: torch.as_tensor(x.numpy())[0].add_(7), "shares memory with an ndarray"),
     (lambda x: x.numpy().__setitem__(0, 5), r"made at .*test_memory.py:\d+\) is written")],
)  # fmt: skip
def test_writes_to_ndarrays_of_tensors_are_refused(write: Any, message: str, captured: bool) -> None:
    x = SQUARE.clone()
    program = (lambda: (write(x), x * 1)[1]) if captured else (lambda x: (write(x), x * 1)[1])
    with pytest.raises(CaptureError, match=message):
        graphc.compile(program)(*(() if captured else (x,)))
    assert torch.equal(x, SQUARE)


# --- grad_fn of a traced tensor


def test_whether_a_traced_tensor_has_a_history() -> None:
    w = torch.ones(2, requires_grad=True)

    @graphc.compile
    def program(x: Any, leaf: Any) -> Any:
        made = x * 2
        found = [t.grad_fn is None for t in (x, leaf, made, made.detach(), w, w * 2)]
        return x * 1, found, made.grad_fn is not None, made.grad_fn == None, bool(made.grad_fn)  # noqa: E711

    assert program(w * 2, w)[1:] == ([False, True, False, True, True, False], True, False, True)
    assert program(torch.ones(2), torch.ones(2))[1] == [True, True, True, True, True, False]


@pytest.mark.parametrize(
    "ask",
    [lambda node: node.name(), lambda node: node.next_functions, lambda node: type(node).__name__,
     repr, lambda node: node == node],
)  # fmt: skip
def test_the_history_of_a_traced_tensor_is_not_shown(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(CaptureError, match="no tape nodes"):
        graphc.compile(lambda x: (x * 1, ask((x * 2).grad_fn)))(torch.ones(2, requires_grad=True))


# --- elements that repeat in memory


EXPANSIONS: list[Callable[[Any], Any]] = [
    lambda x: x.expand(3, 2),
    lambda x: torch.broadcast_tensors(x, torch.zeros(3, 1))[0],
    lambda x: x.as_strided((3, 2), (0, 1)),
    lambda x: x.view(2, 1).t().expand(3, 2),
]
REPEATED_WRITES: list[Callable[[Any], Any]] = [
    lambda v: v.fill_(5),
    lambda v: v.zero_(),
    lambda v: v[1].add_(1),
    lambda v: v[:1].mul_(3),
    lambda v: v[2][1:].add_(4),
    lambda v: v.__setitem__(1, 5.0),
    lambda v: v.__setitem__((slice(1, 2), 0), torch.tensor([7.0])),
    lambda v: v.__setitem__(torch.tensor([[True, False], [False, False], [False, True]]), 0.5),
    lambda v: v.__setitem__(torch.tensor([[True, False], [False, False], [True, True]]), torch.tensor([3.0, 4, 5])),
    lambda v: v.__setitem__(v > 1, float("nan")),
    lambda v: v.__setitem__(v > 9, 0.5),
    lambda v: v.__setitem__((torch.tensor([0, 1]),), torch.tensor([[6.0, 7], [8, 9]])),
    lambda v: v.masked_fill_(v > 1, 3),
]
REFUSED_WRITES: list[Callable[[Any], Any]] = [
    lambda v: v.add_(1),
    lambda v: v.copy_(torch.ones(3, 2)),
    lambda v: v.__setitem__(slice(None), 5.0),
    lambda v: v.__setitem__((slice(None), 0), 5.0),
]


@pytest.mark.parametrize("expand", EXPANSIONS)
@pytest.mark.parametrize("write", REPEATED_WRITES)
def test_writes_to_parts_of_expanded_tensors(expand: Callable[[Any], Any], write: Callable[[Any], Any]) -> None:
    def program(x: Any) -> Any:
        wide = expand(x)
        write(wide)
        return wide.clone(), x * 1

    agrees(program, lambda: torch.tensor([1.0, 2.0]))

    def written(wide: Any) -> Any:
        write(wide)
        return wide.clone()

    x, y = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    compiled = graphc.compile(written)
    for _ in range(2):
        assert repr(compiled(expand(x))) == repr(written(expand(y)))
        assert repr(x) == repr(y)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("write", REFUSED_WRITES)
def test_expanded_tensors_are_not_written_element_by_element(write: Callable[[Any], Any], inside: bool) -> None:
    x = torch.ones(2)
    for wrap in (lambda f: f, graphc.compile):
        with pytest.raises(RuntimeError, match="single memory location"):
            if inside:
                wrap(lambda x: write(x.expand(3, 2)))(x)
            else:
                wrap(lambda wide: write(wide))(x.expand(3, 2))
    assert x.tolist() == [1, 1]


def test_gradients_through_rows_of_expanded_tensors() -> None:
    def program(x: Any) -> Any:
        y = x * 1
        wide = y.expand(3, 2)
        wide[1].mul_(x * 3)
        return y.sum() + wide.sum()

    w = torch.ones(2, requires_grad=True)
    graphc.compile(program)(w).backward()
    assert w.grad.tolist() == [24, 24]


@pytest.mark.parametrize("name", ["untyped_storage", "storage", "data_ptr"])
def test_the_memory_of_traced_tensors_is_not_known(name: str) -> None:
    with pytest.raises(CaptureError, match=rf"{name}\(\) looks at the bytes"):
        graphc.compile(lambda x: (x * 1, getattr(x, name)())[0])(torch.ones(4)[:2])


RETURNED_VIEWS: dict[str, Callable[[Any], Any]] = {
    "diagonal of outer dims": lambda x: x.diagonal(1, 0, 2),
    "part of a diagonal": lambda x: x.diagonal(0, 0, 2)[:1],
    "diagonal of a view": lambda x: x[..., 1:].permute(2, 0, 1).diagonal(0, 0, 2),
    "diagonal of rows": lambda x: x.diagonal(0, 1, 2).unsqueeze(0),
    "windows": lambda x: x.unfold(2, 2, 2),
    "flattened": lambda x: x.mT.mT.flatten(0, 1),
}


@pytest.mark.parametrize("name", RETURNED_VIEWS)
def test_returned_views_show_the_memory(name: str) -> None:
    seen = []
    for run in (RETURNED_VIEWS[name], graphc.compile(RETURNED_VIEWS[name])):
        for _ in range(2):
            x = torch.arange(12.0).view(2, 2, 3)
            view = run(x)
            view.add_(1)
            x.mul_(2)
            seen.append((view.tolist(), view.stride(), x.tolist()))
    assert seen[:2] == seen[2:]
