"""The rows of `graphc.lowering.primitives` give the bits of the kernels they stand for; lowering takes linear time."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from graphc.ir import Builder, Ref
from graphc.lowering import lower, primitives, source
from graphc.lowering.source import Source, jax_kernel
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from tests.depth import one_in
from tests.ops.cases import Case, every_case
from tests.quick import OPTIONS

DTYPES = ["float32", "float16", "int32", "uint8", "bool", "complex64"]
SPECIAL = [-0.0, 0.0, np.inf, -np.inf, np.nan, 0.5, -1.5, 2.0]


Call = tuple[Op, list[np.ndarray], dict[str, Any]]  # an op, operands, parameters


def pairs_of(calls: list[Call]) -> list[tuple[str, Any, Any]]:
    """For each call whose op has a row for such operands: what it is, its value by the row, and by its kernel."""
    rows, kernels, kept = [], [], []
    for op, arrays, params in calls:
        builder = Builder()
        inputs = [builder.input(f"x{k}", Aval(a.shape, a.dtype)) for k, a in enumerate(arrays)]
        node = builder.nodes[builder.apply(op, inputs, params).id]
        names = [f"x{k}" for k in range(len(arrays))]
        text = primitives.expression(node, names, [s.aval for s in inputs])
        if text is not None:
            code, kernel = compile(text, op.name, "eval"), jax_kernel(op)[1]
            rows.append(lambda *xs, c=code, n=names: eval(c, {"lax": lax, "np": np, **dict(zip(n, xs, strict=True))}))
            kernels.append(lambda *xs, k=kernel, p=node.params: k(*xs, **p))
            kept.append((f"{op.name}({', '.join(f'{a.dtype}{a.shape}' for a in arrays)}, {params})", arrays))
    results = []
    for functions in (rows, kernels):  # one program of all rows, and one of all kernels

        def together(given: list[Any], functions: Any = functions) -> list[Any]:
            return [fn(*arrays) for fn, arrays in zip(functions, given, strict=True)]

        with jax.enable_x64(True):
            results.append(jax.jit(together, compiler_options=dict(OPTIONS))([arrays for _, arrays in kept]))
    return [(what, *pair) for (what, _), *pair in zip(kept, *results, strict=True)]


def check_rows(*calls: Call) -> int:
    """Raise AssertionError unless rows and kernels agree in every bit. Returns how many calls have a row."""
    found = pairs_of(list(calls))
    for what, *pair in found:
        got, expected = map(np.asarray, pair)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
        np.testing.assert_array_equal(got, expected, err_msg=what)
        if got.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got), np.signbit(expected), err_msg=what)
    return len(found)


def _cast(array: np.ndarray, dtype: str) -> np.ndarray:
    """`array`, floats of which are in another dtype."""
    return array.astype(dtype) if array.dtype == np.float64 else array


ROWS = [case for case in every_case() if case.op.name in primitives.WRITERS]
BY_OP = [list(cases) for _, cases in itertools.groupby(ROWS, lambda case: case.op.name)]


# test_ops.py compares them with NumPy
@pytest.mark.parametrize("cases", one_in(3, BY_OP, lambda cases: cases[0].op.name))
def test_rows_are_the_kernel(cases: list[Case], rng: np.random.Generator):
    wide = [(case.op, case.arrays(rng), case.sample.params) for case in cases]
    floats, bools = ([(op, [_cast(a, to) for a in given], params) for op, given, params in wide] for to in ("f4", "?"))
    assert check_rows(*wide, *floats) or check_rows(*bools)  # some have a row for bools only


ELEMENTWISE = sorted(n for n in primitives.WRITERS if OPS[n].pointwise and n != "where")


@pytest.mark.parametrize("name", one_in(6, ELEMENTWISE))
def test_elementwise_rows_of_every_dtype(name: str):
    op, calls = OPS[name], []
    for dtype in DTYPES:
        with np.errstate(all="ignore"):
            values = np.array(SPECIAL).astype(dtype)
        calls.append((op, [values[:, None], values][: len(op.args)], {}))
    found = 0
    try:
        found = check_rows(*calls)
    except (NotImplementedError, RuntimeError):  # some dtype is refused: one by one
        for call in calls:
            try:
                found += check_rows(call)
            except (NotImplementedError, RuntimeError) as refused:
                assert "not implemented" in str(refused) or "not supported" in str(refused)
    assert found


def test_ranks_and_scalars_broadcast():
    f32 = np.float32
    for shapes in [((3, 4), (4,)), ((), (3, 4)), ((3, 1), (4,)), ((2, 1, 4), (3, 1)), ((), ()), ((0, 4), (4,))]:
        assert check_rows((OPS["add"], [np.ones(s, f32) for s in shapes], {}))
    for shapes in [((3, 4), (), (4,)), ((), (3, 4), (4,)), ((1, 4), (3, 1), ())]:
        condition, *choices = shapes
        assert check_rows((OPS["where"], [np.ones(condition, bool), *(np.full(s, 2, f32) for s in choices)], {}))


def test_every_row_is_an_op_and_a_function_of_lax():
    assert set(primitives.WRITERS) <= set(OPS)
    for kinds, names in primitives._ELEMENTWISE.items():
        for name in names.split():
            assert callable(getattr(lax, primitives._LAX_NAMES.get(name, name))), (kinds, name)


def test_planted_row_is_caught(monkeypatch):
    monkeypatch.setitem(primitives.WRITERS, "add", lambda node, names, avals: f"lax.sub({names[0]}, {names[1]})")  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="add"):
        check_rows((OPS["add"], [np.ones(3), np.ones(3)], {}))


def long_program(count: int) -> Any:
    builder = Builder()
    x = value = builder.input("x", Aval((8,), np.dtype(np.float32)))
    for _ in range(count // 3):
        value = builder.language.tanh(value * x) - x
    return builder.graph("long", Ref(value.id))


def test_blocks_keep_values_and_lines():
    graph = long_program(1000)
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    np.testing.assert_allclose(np.asarray(lower(graph)(x)), graph(x), rtol=1e-5)
    source = Source(graph)
    traced = jax.jit(source.function()).trace(jax.ShapeDtypeStruct((8,), np.float32))
    last = traced.jaxpr.eqns[-1].source_info.traceback.frames
    assert any(f.line_num == len(source.text.splitlines()) - 1 for f in last if "jax program" in f.file_name)


def test_no_piece_of_a_program_is_long(monkeypatch):
    """JAX takes a time that is quadratic in the length of the function that it traces."""
    lengths = []

    def compiled(text: str, *arguments: str) -> Any:
        lengths.append(len(text.strip().splitlines()))
        return compile(text, *arguments)

    monkeypatch.setattr(source, "compile", compiled, raising=False)
    Source(long_program(6000)).function()
    assert max(lengths) <= source.BLOCK < 200
    assert sum(lengths) >= 6000


def test_inputs_may_have_the_names_that_the_source_uses():
    builder = Builder()
    names = ["np", "lax", "jnp", "ops", "special", "k12", "ok0", "float", "np_"]
    total, *others = [builder.input(name, Aval((3,), np.dtype(np.float32))) for name in names]
    for other in others:
        total = total + other
    total = builder.language.floor_divide(builder.language.cast(total, dtype=np.dtype(np.int32)), 2)
    graph = builder.graph("f", Ref(builder.language.softmax(total, axis=0).id))
    arrays = [np.ones(3, np.float32)] * len(names)
    np.testing.assert_allclose(np.asarray(lower(graph)(*arrays)), graph(*arrays), rtol=1e-6)
