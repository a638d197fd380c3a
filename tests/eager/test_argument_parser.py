"""PyTorch's parser of arguments, from its recorded signatures: what it says of calls that it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

import eager
from eager.functional import parsing
from tests import signatures
from tests.oracle import torch_or_skip

# (name, as a method, the call) -> what PyTorch 2.13 says
RECORDED = {
    ("abs", False, "()"): 'abs() missing 1 required positional arguments: "input"',
    ("hypot", False, "(x)"): 'hypot() missing 1 required positional arguments: "other"',
    ("dropout", False, "(x, 'a')"): "dropout(): argument 'p' (position 2) must be float, not str",
    ("dropout", False, "(x)"): 'dropout() missing 2 required positional argument: "p", "train"',
    ("sin", True, "('a')"): "TensorBase.sin() takes no arguments (1 given)",
    ("sin", True, "(dim=1)"): "TensorBase.sin() takes no keyword arguments",
    ("nonzero", True, "('a')"): "nonzero() takes from 1 to 0 positional arguments but 1 were given",
    ("flip", True, "('a', 1)"): "flip() takes 1 positional argument but 2 were given",
    ("flip", True, "(['a'])"): (
        "flip(): argument 'dims' (position 1) must be tuple of ints, but found element of type str at pos 0"
    ),
    ("cat", False, "([x, 3])"): "expected Tensor as element 1 in argument 0, but got int",
    ("addcdiv", True, "(x)"): (
        "addcdiv() received an invalid combination of arguments - got (Tensor), but expected "
        "(Tensor tensor1, Tensor tensor2, *, Number value = 1)"
    ),
    ("add", True, "(3, foo=1, bar=2)"): (
        "add() received an invalid combination of arguments - got unrecognized keyword arguments: bar, foo"
    ),
    ("fill_", True, "('a')"): (
        "fill_() received an invalid combination of arguments - got (str), but expected one of:\n * (Tensor value)\n"
        "      didn't match because some of the arguments have invalid types: (!str!)\n * (Number value)\n"
        "      didn't match because some of the arguments have invalid types: (!str!)\n"
    ),
    ("clamp", True, "(['a'], (1,))"): (
        "clamp() received an invalid combination of arguments - got (list, tuple), but expected one of:\n"
        " * (Tensor min = None, Tensor max = None)\n"
        "      didn't match because some of the arguments have invalid types: (!list of [str]!, !tuple of (int,)!)\n"
        " * (Number min = None, Number max = None)\n"
        "      didn't match because some of the arguments have invalid types: (!list of [str]!, !tuple of (int,)!)\n"
    ),
    ("gt", True, "(foo=1)"): (
        "gt() received an invalid combination of arguments - got (foo=int, ), but expected one of:\n"
        " * (Tensor other)\n      didn't match because some of the keywords were incorrect: foo\n"
        " * (Number other)\n      didn't match because some of the keywords were incorrect: foo\n"
    ),
}
CALLS = ("()", "(x)", "('a')", "([1.0])", "(None)", "(x, 'a')", "(x, x, 'a')", "(x, foo=1)", "(x, dim='a')")
# settings, and those of which PyTorch says more
OTHERWISE = (
    "set_",
    "sparse_",
    "as_tensor",
    "asarray",
    "range",
    "tensor",
)
SAID = re.compile(r"[\w.]+\(\)(:| received| takes| got| missing) |expected Tensor as element")


def _given(call: str, x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return eval(f"(lambda *args, **kwargs: (args, kwargs)){call}", {"x": x})


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case[0]}{case[2]}")
def test_it_says_what_pytorch_says(case: tuple[str, bool, str]) -> None:
    name, method, call = case
    error = parsing.parsing_error(name, *_given(call, eager.ones(2, 2)), method)
    assert str(error) == RECORDED[case]


@pytest.mark.parametrize(
    "call", ["add(x, 1)", "add(x, x, alpha=2)", "zeros(2, 3)", "zeros((2, 3))", "sum(x, 0, True)", "max(x, dim=0)",
             "max(x, axis=0)", "where(x, x, 1.0)", "full((2,), 1.0)", "linspace(0, 1, 3)", "cat([x, x], 1)"]
)  # fmt: skip
def test_what_pytorch_takes_is_no_error(call: str) -> None:
    name, _, rest = call.partition("(")
    assert parsing.parsing_error(name, *_given(f"({rest}", eager.ones(2, 2))) is None


@pytest.mark.deep
def test_the_signatures_are_those_of_the_pytorch_that_is_installed() -> None:
    torch_or_skip()
    pytest.importorskip("yaml", reason="torchgen reads PyTorch's declarations with PyYAML")
    assert [*signatures.lines()] == parsing.TEXT.splitlines()


def test_all_functions_as_pytorch_itself() -> None:
    torch = torch_or_skip()
    x, theirs = eager.ones(2, 2), torch.ones(2, 2)
    differ: dict[str, tuple[str, str]] = {}
    for name in sorted(parsing._table()):
        function = getattr(torch, name, None)
        if not isinstance(function, type(torch.add)) or (name.startswith(OTHERWISE) and not name.startswith("tensor_")):
            continue
        for call in CALLS:
            values, named = _given(call, theirs.clone())
            try:
                function(*values, **named)
                said = ""
            except TypeError as error:
                said = str(error) if SAID.match(str(error)) else ""
            except Exception:
                said = ""
            ours = str(parsing.parsing_error(name, *_given(call, x)) or "")
            if ours != said:
                differ[f"{name}{call}"] = (ours, said)
    assert not differ


# a method, or function, of each way in which they are made -> what PyTorch says of the call
SAID_OF = {
    "x.sin(1)": "TensorBase.sin() takes no arguments (1 given)",  # generated
    "torch.sin(foo=1)": 'sin() missing 1 required positional arguments: "input"',
    "x.maximum('a')": "maximum(): argument 'other' (position 1) must be Tensor, not str",
    "x.sin_(1)": "TensorBase.sin_() takes no arguments (1 given)",
    "x.atan2_(x, 1)": "atan2_() takes 1 positional argument but 2 were given",
    "x.absolute(foo=1)": "TensorBase.absolute() takes no keyword arguments",  # by another name
    "x.add(x, foo=1)": "add() got an unexpected keyword argument 'foo'",
    "x.sum(foo=1)": "sum() received an invalid combination of arguments - got (foo=int, ), but expected one of:",
    "x.bmm()": 'bmm() missing 1 required positional arguments: "mat2"',  # written
    "torch.nn.functional.linear(x)": 'linear() missing 1 required positional arguments: "weight"',
    "torch.special.softmax(x, 'a')": "special_softmax(): argument 'dim' (position 2) must be int, not str",
}


@pytest.mark.parametrize("call", SAID_OF)
def test_every_public_function_asks_the_parser_after_a_failure(call: str) -> None:
    with pytest.raises(TypeError) as error:
        eval(call, {"torch": eager, "x": eager.ones(2, 2)})
    assert str(error.value).splitlines()[0] == SAID_OF[call].splitlines()[0]


def test_arguments_are_taken_by_name_as_well() -> None:
    x = eager.ones(2, 2)
    assert eager.equal(eager.maximum(other=x, input=2 * x), 2 * x) and eager.equal(x.add(other=x), 2 * x)
