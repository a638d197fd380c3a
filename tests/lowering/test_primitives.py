"""The rows of `graphc.lowering.primitives` give the bits of the kernels they stand for; lowering takes linear time."""

from __future__ import annotations

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
from tests.ops.cases import Case, every_case

DTYPES = ["float32", "float16", "int32", "uint8", "bool", "complex64"]
SPECIAL = [-0.0, 0.0, np.inf, -np.inf, np.nan, 0.5, -1.5, 2.0]


def both_ways(op: Op, arrays: list[np.ndarray], params: dict[str, Any]) -> tuple[Any, Any] | None:
    """The value by the row of `op`, and by its kernel; None if it has no row for these operands."""
    builder = Builder()
    inputs = [builder.input(f"x{k}", Aval(a.shape, a.dtype)) for k, a in enumerate(arrays)]
    node = builder.nodes[builder.apply(op, inputs, params).id]
    names = [f"x{k}" for k in range(len(arrays))]
    text = primitives.expression(node, names, [s.aval for s in inputs])
    if text is None:
        return None
    code = compile(text, op.name, "eval")
    _, kernel = jax_kernel(op)
    with jax.enable_x64(True):
        by_row = jax.jit(lambda *xs: eval(code, {"lax": lax, "np": np, **dict(zip(names, xs, strict=True))}))(*arrays)
        return by_row, jax.jit(lambda *xs: kernel(*xs, **node.params))(*arrays)


def check_row(op: Op, arrays: list[np.ndarray], params: dict[str, Any]) -> bool:
    """Raise AssertionError unless row and kernel agree in every bit. Returns whether there is a row."""
    found = both_ways(op, arrays, params)
    if found is None:
        return False
    got, expected = map(np.asarray, found)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), op.name
    np.testing.assert_array_equal(got, expected, err_msg=op.name)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected), err_msg=op.name)
    return True


ROWS = [case for case in every_case() if case.values[0].op.name in primitives.WRITERS]  # type: ignore[union-attr]


@pytest.mark.parametrize("case", ROWS)
def test_row_is_the_kernel(case: Case, rng: np.random.Generator):
    arrays = case.arrays(rng)
    check_row(case.op, arrays, case.sample.params)
    check_row(case.op, [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays], case.sample.params)


ELEMENTWISE = sorted(n for n in primitives.WRITERS if OPS[n].pointwise and n != "where")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_rows_of_every_dtype(name: str, dtype: str):
    op = OPS[name]
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(dtype)
    arrays = [values[:, None], values][: len(op.args)]
    try:
        check_row(op, arrays, {})
    except (NotImplementedError, RuntimeError) as refused:
        assert "not implemented" in str(refused) or "not supported" in str(refused)


def test_ranks_and_scalars_broadcast():
    f32 = np.float32
    for shapes in [((3, 4), (4,)), ((), (3, 4)), ((3, 1), (4,)), ((2, 1, 4), (3, 1)), ((), ()), ((0, 4), (4,))]:
        assert check_row(OPS["add"], [np.ones(s, f32) for s in shapes], {})
    for shapes in [((3, 4), (), (4,)), ((), (3, 4), (4,)), ((1, 4), (3, 1), ())]:
        condition, *choices = shapes
        assert check_row(OPS["where"], [np.ones(condition, bool), *(np.full(s, 2, f32) for s in choices)], {})


def test_every_row_is_an_op_and_a_function_of_lax():
    assert set(primitives.WRITERS) <= set(OPS)
    for kinds, names in primitives._ELEMENTWISE.items():
        for name in names.split():
            assert callable(getattr(lax, primitives._LAX_NAMES.get(name, name))), (kinds, name)


def test_planted_row_is_caught(monkeypatch):
    monkeypatch.setitem(primitives.WRITERS, "add", lambda node, names, avals: f"lax.sub({names[0]}, {names[1]})")  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="add"):
        check_row(OPS["add"], [np.ones(3), np.ones(3)], {})


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
