"""What is no tensor, no dim or no flag is refused by every function with the names that the user wrote."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import eager
from eager.core import operands
from eager.surface import public

F = eager.nn.functional
INSIDE = re.compile(r"<locals>|attribute '_")  # names of the inside of this package
SETTINGS = ("set_", "autocast", "use_", "seed", "manual_seed", "compile", "load", "save", "get_", "is_")
REDUCTIONS = (
    "sum mean prod amax amin max min argmax argmin all any logsumexp nansum nanmean median mode var std".split()
)
NO_FORM = " received an invalid combination of arguments - got "
AT = r"( \(position [123]\))?"
WITH_POSITION = {  # recorded from PyTorch 2.13
    "celu('a')": "celu(): argument 'input' (position 1) must be Tensor, not str",
    "silu('a')": "silu(): argument 'input' (position 1) must be Tensor, not str",
    "hardtanh('a')": "hardtanh(): argument 'input' (position 1) must be Tensor, not str",
    "kl_div(x, 'a')": "kl_div(): argument 'target' (position 2) must be Tensor, not str",
    "linear(x, x, 'a')": "linear(): argument 'bias' (position 3) must be Tensor, not str",
    "cross_entropy(x, 'a')": "cross_entropy_loss(): argument 'target' (position 2) must be Tensor, not str",
    "nll_loss(x, 'a')": "nll_loss_nd(): argument 'target' (position 2) must be Tensor, not str",
    "mse_loss(x, [1.0])": "'list' object has no attribute 'size'",
    "softmax([1.0])": "'list' object has no attribute 'dim'",
}


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in sorted(public.every_name() - set(vars(operands))):
        if not name.startswith((*SETTINGS, "_")) and public.is_fixed(name):
            yield name, getattr(eager, name)
    for name in F.__all__:
        yield f"nn.functional.{name}", getattr(F, name)


def test_no_error_speaks_of_the_inside() -> None:
    found: dict[str, str] = {}
    for name, function in _functions():
        if not callable(function) or isinstance(function, type):
            continue
        x = eager.ones(2, 2)
        for arguments in (("a",), ([1.0],), (x, "a"), (x, x, "a")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    function(*arguments)
                except Exception as error:
                    if INSIDE.search(str(error)):
                        found[name] = str(error)
                        break
    assert not found


@pytest.mark.parametrize("call", WITH_POSITION)
def test_the_argument_is_named(call: str) -> None:
    with pytest.raises((TypeError, AttributeError)) as caught:
        eval(f"F.{call}", {"F": F, "x": eager.ones(2, 2)})
    assert str(caught.value) == WITH_POSITION[call]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_second_dim_is_no_keepdim(name: str) -> None:
    """`x.sum(0, 1)` once kept the dim 0; PyTorch refuses it."""
    x = eager.arange(12.0).reshape(3, 4)
    flag = "unbiased" if name in ("var", "std") else "keepdim"
    for call in (lambda: getattr(x, name)(0, 1), lambda: getattr(eager, name)(x, 0, 1)):
        with pytest.raises(
            TypeError, match=rf"^{name}\(\)(: argument '{flag}'( \(position [23]\))? must be bool, not int$|{NO_FORM})"
        ):
            call()
    with pytest.raises(
        TypeError, match=rf"^{name}\(\)(: argument 'dim'{AT} must be (int|tuple of ints), not str$|{NO_FORM})"
    ):
        getattr(x, name)("rows")
    if name != "mode":
        getattr(x, name)(0, keepdim=True)


@pytest.mark.parametrize("name", ["std", "var"])
def test_a_spread_without_freedom_warns(name: str) -> None:
    with pytest.warns(UserWarning, match=rf"^{name}\(\): degrees of freedom is <= 0\. Correction should be"):
        assert getattr(eager.ones(1), name)().isnan()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(eager.ones(2), name)()
        getattr(eager.ones(1), name)(correction=0)


def test_a_subclass_keeps_its_name_and_its_gradient() -> None:
    class Image(eager.Tensor):
        def __new__(cls, data: Any, *, kind: str) -> Any:
            made = eager.as_tensor(data).as_subclass(cls)
            made.kind = kind  # type: ignore[attr-defined]
            return made

    image = Image([1.0, 2.0], kind="rgb")
    assert repr(image) == "Image([1., 2.])" and image.kind == "rgb" and isinstance(image, Image)
    w = eager.ones(2, requires_grad=True)
    (w.as_subclass(Image) * 3).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3.0, 3.0]
    view = w.detach().as_subclass(Image)
    view.mul_(2)
    assert w.tolist() == [2.0, 2.0] and type(view.as_subclass(eager.Tensor)) is eager.Tensor
    with pytest.raises(TypeError, match=r"Creating a Tensor subclass from a class that does not inherit from Tensor"):
        w.as_subclass(int)
    with pytest.raises(TypeError, match=r"cls must be a type \(got int\)"):
        w.as_subclass(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'kind'"):
        eager.Tensor([1.0], kind="rgb")
