"""A second backward() through what the first one has freed is refused inside compiled functions, as in eager."""

from collections.abc import Callable
from typing import Any

import pytest

import eager
import graphc
from tests.oracle import asked_of_torch, torch_or_skip


def square(module: Any, saves: bool) -> Any:
    """A user's Function, which saves its input or needs nothing."""

    class Square(module.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if saves:
                ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0] if saves else g

    return Square


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "median": lambda t, x: x.median(),
    "sort": lambda t, x: x.sort()[0].sum(),
    "kthvalue": lambda t, x: x.kthvalue(2)[0],
    "max": lambda t, x: x.max(0)[0],
    "topk": lambda t, x: x.topk(2)[0].sum(),
    "cummax": lambda t, x: x.cummax(0)[0].sum(),
    "qr": lambda t, x: t.linalg.qr(x.reshape(2, 2))[0].sum(),
    "slogdet": lambda t, x: t.linalg.slogdet(x.reshape(2, 2))[1],
    "svd": lambda t, x: t.linalg.svdvals(x.reshape(2, 2)).sum(),
    "nanmedian": lambda t, x: x.nanmedian(),
    "product": lambda t, x: (x * x).sum(),
    "sum": lambda t, x: x.sum(),
    "shifted": lambda t, x: (x + 1).sum(),
    "function": lambda t, x: square(t, True).apply(x).sum(),
    "function that saves nothing": lambda t, x: square(t, False).apply(x).sum(),
}


def outcome(module: Any, name: str, wrap: Callable[[Any], Any]) -> Any:
    def step(x: Any) -> None:
        y = PROGRAMS[name](module, x)
        y.backward()
        y.backward()

    x = module.tensor([3.0, 1.0, 2.0, 5.0], requires_grad=True)
    try:
        wrap(step)(x)
    except RuntimeError as error:
        return str(error).partition(" (")[0]
    return x.grad.tolist()


@pytest.mark.on_numpy
@asked_of_torch("name", PROGRAMS)
def test_a_second_backward_inside_is_refused_where_pytorch_refuses_it(name: str) -> None:
    wanted = outcome(torch_or_skip(), name, lambda f: f)
    assert outcome(eager, name, lambda f: f) == wanted
    assert outcome(eager, name, graphc.compile) == wanted
