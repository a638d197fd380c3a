"""`torch.library`: operations by schema, and their checks. Messages are PyTorch's."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

import eager as torch
from eager.autograd import custom_ops
from eager.library.checks import OpCheckError
from eager.library.libraries import signature_of


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    yield torch.library.Library("of_a_test", "DEF")
    custom_ops._known.pop("of_a_test", None)
    custom_ops._unloaded.clear()


def test_a_schema_gets_its_functions_one_by_one(library):
    assert library.define("scaled(Tensor x, float by=2.0, *, int[2] n=[1, 2]) -> Tensor") == "scaled"
    op, x = torch.ops.of_a_test.scaled, torch.ones(2)
    with pytest.raises(NotImplementedError, match="Could not run 'of_a_test::scaled' with arguments from the 'CPU'"):
        op(x)
    library.impl("scaled", lambda x, by=2.0, n=None: x * by, "CPU")
    assert torch.equal(op(x, 3.0), 3 * x) and torch.equal(op(x), 2 * x)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        op(x.clone().requires_grad_()).sum().backward()
    library.impl("scaled", lambda x, by=2.0, n=None: torch.empty(7), "Meta")
    assert op(x.to("meta")).shape == (7,)
    with pytest.raises(RuntimeError, match="same name and overload name multiple times"):
        library.define("scaled(Tensor x) -> Tensor")


def test_a_composite_has_the_gradients_of_what_it_calls(library):
    torch.library.define("of_a_test::cubed", "(Tensor x) -> Tensor")
    torch.library.impl(library, "cubed", "CompositeImplicitAutograd")(lambda x: x**3)
    x = torch.tensor([2.0], requires_grad=True)
    torch.ops.of_a_test.cubed(x).backward()
    assert x.grad.item() == 12


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.library.Library("x", "DEF2"), ValueError, "Unsupported kind: DEF2"),
        (lambda: torch.library.Library("x", "DEF").define("bad"), RuntimeError, "only the operator name was given"),
        (lambda: torch.library.define("f", "() -> ()"), ValueError, 'form "namespace::name", but got f'),
        (lambda: torch.library.impl("of_a_test::none", "cpu", abs), RuntimeError, "does not exist"),
        (lambda: torch.library.infer_schema(lambda x: x, mutates_args=()), ValueError, "x must have a type annotation"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_schemas_of_functions_are_read_as_they_are_written():
    def fn(
        x: torch.Tensor, y: list[torch.Tensor], a: int | None = None, *, s: str = "a", ok: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor]: ...

    fn.__annotations__ = inspect.get_annotations(fn, eval_str=True)
    written = torch.library.infer_schema(fn, mutates_args={"x"})
    assert (
        written == '(Tensor(a0!) x, Tensor[] y, SymInt? a=None, *, str s="a", bool ok=True) -> (Tensor, Tensor)'
    )  # PyTorch 2.13
    name, signature = signature_of(f"fn{written}")
    assert name == "fn"
    expected = [(p.name, p.kind, p.default) for p in inspect.signature(fn).parameters.values()]
    assert [(p.name, p.kind, p.default) for p in signature.parameters.values()] == expected


@pytest.mark.on_numpy
def test_opcheck_finds_what_is_wrong(library):
    def op(name, fn, fake=None):
        made = torch.library.custom_op(f"of_a_test::{name}", fn, mutates_args=())
        if fake is not None:
            made.register_fake(fake)
        return made

    x = torch.ones(2)
    good = op("good", lambda x: x * 2)
    assert set(torch.library.opcheck(good, (x,)).values()) == {"SUCCESS"}
    assert torch.equal(x, torch.ones(2))
    with pytest.raises(OpCheckError, match="test_schema failed with Argument x is not defined as mutable but was"):
        torch.library.opcheck(op("writes", lambda x: x.add_(1) * 2), (x,))
    assert torch.equal(x, torch.ones(2))
    wrong = op("wrong", lambda x: x * 2, lambda x: x.new_empty(3))
    with pytest.raises(OpCheckError, match=r"Shapes torch.Size\(\[2\]\) and torch.Size\(\[3\]\) are not equal"):
        torch.library.opcheck(wrong, (x,), test_utils="test_faketensor")
    found = torch.library.opcheck(wrong, (x,), raise_exception=False)
    assert [test for test, result in found.items() if result != "SUCCESS"] == ["test_faketensor"]


def test_a_compiled_library_is_not_loaded(library):
    with pytest.raises(OSError, match="Could not load this library"):
        torch.ops.load_library("/somewhere/of_a_test/_C.so")
    torch.library.register_fake("of_a_test::absent")(lambda x: x)  # means nothing, and is no error
    assert "absent" not in dir(torch.ops.of_a_test)
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.library.register_fake("of_another::absent")
