"""Writes that read the memory which they write are refused where PyTorch refuses them, before anything is written."""

from collections.abc import Callable
from typing import Any

import pytest

import eager
import graphc
from eager.engine.overlap import OVERLAP
from tests.oracle import asked_of_torch, torch_or_skip

# a target and an operand of nine numbers in one memory
PAIRS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "part": lambda x: (x[1:], x[:-1]), "itself": lambda x: (x, x), "alias": lambda x: (x, x[:]),
    "flip": lambda x: (x.reshape(3, 3), x.reshape(3, 3).t()), "one": lambda x: (x, x[4]),
    "gaps": lambda x: (x[:8:2], x[1::2]), "apart": lambda x: (x[:4], x[4:8]),
    "columns": lambda x: (x.reshape(3, 3)[:, :2], x.reshape(3, 3)[:, 1:]),
    "a dim of size 1": lambda x: (x.unsqueeze(1), x.reshape(9, 1)),
}  # fmt: skip
TWO = [0, 1]
WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{f"{name}_": lambda t, a, b, name=name: getattr(a, f"{name}_")(b) for name in (
        "add sub mul div pow copy remainder fmod atan2 eq lt hypot xlogy clamp_min fmax floor_divide heaviside"
    ).split() if hasattr(eager.Tensor, f"{name}_")},
    "add_ scaled": lambda t, a, b: a.add_(b, alpha=2), "lerp_": lambda t, a, b: a.lerp_(b, 0.25),
    "addcmul_": lambda t, a, b: a.addcmul_(t.ones(()), b), "addcdiv_": lambda t, a, b: a.addcdiv_(b, t.ones(())),
    "clamp_": lambda t, a, b: a.clamp_(b, None), "masked_fill_": lambda t, a, b: a.masked_fill_(b > 1, 0.0),
    "masked_scatter_": lambda t, a, b: a.masked_scatter_(t.ones(a.shape, dtype=t.bool), b.expand_as(a)),
    "index_copy_": lambda t, a, b: a.index_copy_(0, t.tensor(TWO), b[:2]),
    "index_add_": lambda t, a, b: a.index_add_(0, t.tensor(TWO), b[:2]),
    "index_put_": lambda t, a, b: a.index_put_((t.tensor(TWO),), b[:2]),
    "index_put_ accumulating": lambda t, a, b: a.index_put_((t.tensor(TWO),), b[:2], accumulate=True),
    "scatter_": lambda t, a, b: a.scatter_(0, t.zeros(a.shape, dtype=t.int64), b),
    "scatter_add_": lambda t, a, b: a.scatter_add_(0, t.zeros(a.shape, dtype=t.int64), b),
    "put_": lambda t, a, b: a.put_(t.tensor(TWO), b.reshape(-1)[:2]),
    "x[i] =": lambda t, a, b: a.__setitem__(t.tensor(TWO), b[:2]),
    "x[mask] =": lambda t, a, b: a.__setitem__(t.ones(a.shape, dtype=t.bool), b.reshape(-1)),
    "x[...] =": lambda t, a, b: a.__setitem__(..., b), "x[:2] =": lambda t, a, b: a.__setitem__(slice(0, 2), b[:2]),
    "out=": lambda t, a, b: t.exp(b, out=a), "tril_": lambda t, a, b: a.reshape(-1, 1).tril_(),
    "fill_": lambda t, a, b: a.fill_(b.reshape(-1)[0]), "cumsum_": lambda t, a, b: a.cumsum_(0),
}  # fmt: skip


def refusal(module: Any, write: str, pair: str, run: Callable[..., Any] | None = None) -> str | None:
    """What a write says, if it refuses for shared memory: then nothing has been written."""
    x = module.arange(1.0, 10.0) / 4
    before = x.tolist()

    def program(x: Any) -> Any:
        a, b = PAIRS[pair](x)
        WRITES[write](module, a, b)
        return x * 1

    try:
        (run or (lambda f: f))(program)(x)
    except (RuntimeError, IndexError) as error:
        if "memory location" not in str(error):
            return None
        assert x.tolist() == before
        return str(error)
    return None


@asked_of_torch("write", WRITES)
def test_eager_refuses_what_pytorch_refuses(write: str) -> None:
    torch = torch_or_skip()
    found, wanted = ({pair: refusal(module, write, pair) for pair in PAIRS} for module in (eager, torch))
    assert found == wanted


@pytest.mark.on_numpy
@pytest.mark.parametrize("write", ["add_", "copy_", "index_copy_", "scatter_add_", "x[:2] =", "x[i] =", "out="])
def test_compiled_functions_refuse_what_eager_refuses(write: str) -> None:
    pairs = [pair for pair in PAIRS if not (write == "out=" and pair == "gaps")]  # what is resized needs its memory
    plain, compiled = ({pair: refusal(eager, write, pair, run) for pair in pairs} for run in (None, graphc.compile))
    assert compiled == plain
    assert OVERLAP in plain.values()


@pytest.mark.on_numpy
def test_a_compiled_function_refuses_arguments_that_overlap_after_others_that_do_not() -> None:
    @graphc.compile
    def add(a: Any, b: Any) -> None:
        a.add_(b)

    x = eager.arange(6.0)
    add(x[:3], x[3:])
    add(x[:3], x[3:])
    before = x.tolist()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="single memory location"):
            add(x[1:], x[:-1])
    assert x.tolist() == before
    add(x, x)
    assert x.tolist() == [2 * v for v in before]


@asked_of_torch("recorded", [False, True])
def test_a_write_with_a_history_is_refused_too(recorded: bool) -> None:
    def told(module: Any) -> str:
        x = module.arange(6.0).requires_grad_(recorded) * 1
        with pytest.raises(RuntimeError) as error:
            x[1:] = x[:-1]
        return str(error.value)

    assert told(eager) == told(torch_or_skip())


EXPANDED: dict[str, Callable[[Any, Any], Any]] = {
    "index_fill_": lambda t, x: x.index_fill_(0, t.tensor([1]), 5.0),
    "index_fill_ of a tensor": lambda t, x: x.index_fill_(0, t.tensor([1]), t.tensor(5.0)),
    "index_put_": lambda t, x: x.index_put_((t.tensor([0]),), t.tensor(5.0)),
    "index_put_ accumulating": lambda t, x: x.index_put_((t.tensor([0, 2]),), t.tensor([5.0, 1.0]), accumulate=True),
    "masked_fill_": lambda t, x: x.masked_fill_(t.tensor([False, True, False]), t.tensor(5.0)),
}


@pytest.mark.filterwarnings("ignore:Use of")
@asked_of_torch("name", EXPANDED)
def test_expanded_tensors_are_written_where_pytorch_writes_them(name: str) -> None:
    def written(module: Any) -> list[float]:
        base = module.arange(3.0)
        EXPANDED[name](module, base[1:2].expand(3))
        return base.tolist()

    assert written(eager) == written(torch_or_skip())


def test_writes_at_indices_of_expanded_tensors_warn() -> None:
    with pytest.warns(UserWarning, match="Use of index_fill_ on expanded tensors is deprecated"):
        EXPANDED["index_fill_"](eager, eager.ones(1).expand(3))
    with pytest.warns(UserWarning, match="Use of index_put_ on expanded tensors is deprecated"):
        EXPANDED["index_put_"](eager, eager.ones(1).expand(3))


@pytest.mark.on_numpy
def test_the_diagonal_of_an_expanded_tensor_is_filled_in_compiled_functions() -> None:
    def fill(x: Any) -> Any:
        x[:1].expand(3, 3).fill_diagonal_(7.0)
        return x + 1

    plain, compiled = eager.zeros(2), eager.zeros(2)
    assert graphc.compile(fill)(compiled).tolist() == fill(plain).tolist() == [8.0, 1.0]
    assert compiled.tolist() == plain.tolist() == [7.0, 0.0]
