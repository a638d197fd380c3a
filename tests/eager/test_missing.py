"""What is said of names that PyTorch has and this package has not, and of names with a typing error."""

from __future__ import annotations

import importlib

import pytest

import eager
from eager.core.missing import about, modules, recorded
from eager.surface import names


def _is_here(name: str) -> bool:
    try:
        importlib.import_module(f"eager.{name}")
    except ModuleNotFoundError:
        return False
    return True


ABSENT = [name for name in modules() if not _is_here(name)]  # of others, some names are missing


@pytest.mark.parametrize("place", recorded())
def test_every_missing_name_says_why(place: str):
    owner = eager
    for part in place.split(".")[1:]:
        owner = getattr(owner, part)
    for name in recorded()[place]:
        if not hasattr(owner, name):
            with pytest.raises(AttributeError, match=r"has no attribute '.*PyTorch has it; not here: "):
                getattr(owner, name)


def test_missing_methods_are_those_of_pytorch():
    wanted = {name for name in recorded()["torch.Tensor"] if not hasattr(eager.Tensor, name)}
    assert {*names.MISSING_METHODS.split()} == wanted


@pytest.mark.parametrize("name", ABSENT)
def test_missing_modules_say_what_to_use(name: str):
    with pytest.raises(ModuleNotFoundError, match="Use instead: "):
        importlib.import_module(f"eager.{name}")
    owner = eager
    *parts, last = name.split(".")
    for part in parts:
        owner = getattr(owner, part)
    with pytest.raises(AttributeError, match=f"has no attribute '{last}'. .*Use instead: "):
        getattr(owner, last)


@pytest.mark.parametrize(
    "statement, text",
    [
        ("import eager.nested", "pad_sequence"),
        ("from eager import hsmm", "torch.sparse"),
        ("import eager.distributed.rpc", "send_object_list"),
        ("from eager import tensr", "Did you mean: 'tensor'"),
        ("from eager.utils.data import DataLoder", "Did you mean: 'DataLoader'"),
    ],
)
def test_import_errors_say_it_too(statement: str, text: str):
    with pytest.raises(ImportError, match=text):
        exec(statement)


@pytest.mark.parametrize(
    "expression, meant",
    [
        ("torch.tensr", "'tensor'"), ("torch.nn.Linaer", "'Linear'"), ("torch.linalg.eigg", "'eig' or 'eigh'"),
        ("torch.nn.functional.cross_entropi", "'cross_entropy'"), ("torch.optim.Adm", "'Adam"),
        ("torch.special.expitt", "'expit'"), ("torch.autograd.Functionn", "'Function'"), ("torch.fft.fftt", "'fft"),
    ],
)  # fmt: skip
def test_typing_errors_get_a_suggestion(expression: str, meant: str):
    with pytest.raises(AttributeError, match=f"Did you mean: {meant}"):
        eval(expression, {"torch": eager})


def test_what_is_unknown_stays_a_plain_error():
    with pytest.raises(AttributeError, match=r"^module 'eager' has no attribute 'qqqq'$"):
        eager.qqqq  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'eager.qqqq'$"):
        importlib.import_module("eager.qqqq")
    assert not about("eager", "qqqq") and not hasattr(eager, "nested")


def test_methods_of_tensors_say_why():
    with pytest.raises(AttributeError, match=r"'Tensor' object has no attribute 'dequantize'.*quantized"):
        eager.ones(1).dequantize()
