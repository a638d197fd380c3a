"""The names of arguments are PyTorch's: of every function and method that PyTorch declares in its own registry."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import eager
from eager.core.missing import MissingMethod
from tests.oracle import torch_or_skip

CALLS = (
    "x.cumsum(axis=0)", "torch.softmax(x, axis=1)", "x.unsqueeze(axis=0)", "x.select(axis=0, index=1)",
    "torch.max(x, axis=0, keepdims=True).values", "x.amax(axis=1, keepdims=True)", "torch.median(x, axis=0).values",
    "x.copy_(other=x)", "x.expand(size=(2, 2, 3))", "x.view(size=(3, 2))", "x.view(dtype=torch.int32)",
    "x.repeat(repeats=(2, 1))", "x.permute(dims=(1, 0))", "x.reshape(shape=(3, 2))", "x.sum(dim=0)", "x.sum(axis=0)",
    "x.transpose(dim0=0, dim1=1)", "x.squeeze(dim=0)", "x.flip(dims=(0,))", "x.tile(dims=(1, 2))",
    "torch.swapaxes(x, axis0=0, axis1=1)", "x.resize_(size=(1, 2))", "x.sum_to_size(size=(1, 3))",
    "x.hsplit(sections=3)[0]", "torch.vsplit(x, indices=(1,))[1]", "torch.tensor_split(x, sections=2)[0]",
    "torch.tensor_split(x, indices=(1,), dim=1)[1]", "torch.isin(elements=x, test_element=1)",
    "torch.det(input=x[:, :2])", "torch.inverse(input=x[:, :2])", "torch.rand(size=(2, 3)).shape[0] + x",
    "torch.split(x, split_size_or_sections=1)[0]", "x.split(split_size=1)[1]", "torch.cat(tensors=[x, x], dim=1)",
    "torch.matrix_power(input=x[:, :2], n=2)", "x.diff(axis=1)", "x.std(axis=0, keepdims=True)",
    "x.index_select(axis=1, index=torch.tensor([0]))", "torch.where(x > 1, input=x, other=x)", "x.clamp(min=1, max=2)",
    "x.gather(axis=1, index=torch.tensor([[0], [1]]))", "torch.topk(x, 1, axis=0).values", "x.to(tensor=x)",
)  # fmt: skip
ARRAY = np.array([[1.0, 2.0, 4.0], [0.5, 3.0, -1.0]], np.float32)
# names that are of no argument there is here, or that no call reaches: place or function -> names, and why
LEFT: dict[str, str] = {
    "a b l n t i x s e idx list reverse": "of overloads on Python's numbers and lists, for TorchScript",
    "out": "an output that TorchScript writes to; `out=` is checked by the table of those that have it",
    "out0 out1 out_dtype layout pin_memory generator implicit": "settings of storage, which have one value here",
    "from": "a keyword of Python: given by position",
    "tensor scalar scalar1 scalar2 other tensor1 tensor2": "of overloads by the type of their first argument",
}
OUTPUTS = (
    "values indices hist bin_edges mantissa exponent max max_values min min_indices tau M X L U P Q R V S Vh info sign "
    "logabsdet LU LD pivots inverse result eigenvalues eigenvectors eigvals eigvecs rank residuals singular_values "
    "solution"
).split()
OF_OTHERS = {"torch.normal": {"input"}, "Tensor.copy_": {"src"}}  # of forms that only TorchScript calls by that name
RECURRENT = ("gru", "lstm", "rnn_relu", "rnn_tanh")  # lists of weights, which modules give by position


def declared(torch: Any) -> Iterator[tuple[str, str, set[str]]]:
    """(place, name, names of arguments) of each function that PyTorch declares and both have."""
    for place in ("torch", "Tensor"):
        theirs, ours = (torch, eager) if place == "torch" else (torch.Tensor, eager.Tensor)
        for name in sorted(set(dir(theirs)) & set(dir(ours))):
            kind = type(getattr(theirs, name)).__name__
            if isinstance(vars(ours).get(name), MissingMethod) or name in RECURRENT:
                continue
            if name[0] == "_" or kind not in ("builtin_function_or_method", "method_descriptor"):
                continue
            names: set[str] = set()
            for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
                given = [a.name for a in schema.arguments if not a.is_out]
                if "Dimname" in str(schema) or "str dim" in str(schema) or (place == "Tensor" and "self" not in given):
                    continue
                names |= {"input" if n == "self" else n for n in given if place == "torch" or n != "self"}
            yield place, name, names


def test_names_are_pytorchs():
    torch = torch_or_skip()
    left = {name for names in LEFT for name in names.split()} | {*OUTPUTS}
    wrong: list[str] = []
    seen = 0
    for place, name, names in declared(torch):
        function = getattr(eager if place == "torch" else eager.Tensor, name)
        known = inspect.signature(function).parameters
        if any(p.kind is p.VAR_KEYWORD for p in known.values()):
            continue
        taken = {n for n, p in known.items() if p.kind is not p.VAR_POSITIONAL} | {
            *getattr(function, "other_names", ())
        }
        also = {other for other, own in (("axis", "dim"), ("keepdims", "keepdim")) if own in names & taken}
        seen += len(names)
        if missing := (names | also) - taken - left - OF_OTHERS.get(f"{place}.{name}", set()):
            wrong.append(f"{place}.{name}: {sorted(missing)}")
    assert not wrong and seen > 2000


@pytest.mark.parametrize("call", CALLS)
def test_calls_by_name(call: str):
    ours = eval(call, {"torch": eager, "x": eager.tensor(ARRAY)})
    if "rand(" in call:
        return
    torch = torch_or_skip()
    theirs = eval(call, {"torch": torch, "x": torch.tensor(ARRAY)})
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_a_name_that_is_given_twice_or_unknown_is_refused():
    cumsum = eager.tensor(ARRAY).cumsum
    twice: list[tuple[tuple[int, ...], dict[str, int]]] = [((), {"dim": 0, "axis": 1}), ((0,), {"axis": 1})]
    for values, named in [*twice, ((), {"axes": 0})]:
        with pytest.raises(TypeError, match=r"multiple values|unexpected keyword|missing 1"):
            cumsum(*values, **named)


def test_compiled_functions_take_the_names_too():
    import compare

    def f(x: Any) -> Any:
        return x.softmax(axis=1).cumsum(axis=0).expand(size=(2, 2, 3)).amax(axis=0, keepdims=True)

    assert compare.check(f, eager.tensor(ARRAY, requires_grad=True)).ok
