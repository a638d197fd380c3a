"""The random streams are PyTorch's, and a trace sees draws instead of numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import eager
from eager import random
from eager.core import dtypes
from eager.core.interpreter import Interpreter, interpreting
from eager.core.tensor import Tensor
from eager.rng import fills, functions
from eager.rng.fused import fused
from eager.rng.generator import Generator
from tests.eager.tensors import leaf, tensor
from tests.oracle import torch_or_skip

SEEDS = (0, 1, -1, 2**40 + 5)
SHAPES = ((1,), (15,), (16,), (17,), (3, 7), (1000,), (0, 3))


@pytest.fixture(params=SEEDS)
def torch(request: pytest.FixtureRequest) -> Any:
    """The real torch, seeded as the default generator is."""
    torch = torch_or_skip()
    torch.manual_seed(request.param)
    random.manual_seed(request.param)
    return torch


def array(t: Any) -> np.ndarray:
    return t.numpy() if isinstance(t, Tensor) else t.detach().numpy()


def assert_same_bits(mine: Tensor, theirs: Any) -> None:
    a, b = array(mine), array(theirs)
    assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_uniform_streams_are_equal_to_the_bit(torch: Any, shape: tuple[int, ...], name: str):
    mine, theirs = getattr(dtypes, name), getattr(torch, name)
    a, b = functions.rand(shape, dtype=mine), torch.rand(shape, dtype=theirs)
    assert_same_bits(a, b)
    assert_same_bits(functions.bernoulli(a), torch.bernoulli(b))
    for ends in ((-0.3, 0.7), (-0.3, 0.2), (1, 1 + 2**-20)):
        assert_same_bits(a.uniform_(*ends), b.uniform_(*ends))
    assert_same_bits(a.bernoulli_(0.3), b.bernoulli_(0.3))
    assert_same_bits(a.random_(), b.random_())
    assert_same_bits(a.random_(3, 20), b.random_(3, 20))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_uniform_numbers_of_few_digits_stay_below_the_end(torch: Any, name: str):
    def drawn(t: Any) -> list[Any]:
        dtype = getattr(t, name)
        return [t.rand(4000, dtype=dtype).float(), t.empty(4000, dtype=dtype).uniform_(5, 7).float()]

    for mine, theirs in zip(drawn(eager), drawn(torch), strict=True):
        assert_same_bits(mine, theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fused_sum_is_rounded_once(dtype: Any):
    x, factor, term = np.linspace(0, 1, 101).astype(dtype), dtype(1 / 3), dtype(-0.1)
    exact = [dtype(float(Fraction(float(v)) * Fraction(float(factor)) + Fraction(float(term)))) for v in x]
    assert fused(x, factor, term).tolist() == exact


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "tolerance"), [("float32", 5e-6), ("float64", 1e-14), ("complex64", 5e-6)])
def test_normal_streams_agree_to_the_last_bits_of_the_logarithm(
    torch: Any, shape: tuple[int, ...], name: str, tolerance: float
):
    # PyTorch has a logarithm, sine and cosine for each kind of processor; an angle of up to 2 pi that is an ULP off
    # moves a number of up to sqrt(-2 log 2^-24) = 5.8 by 36 ULP of 1
    mine, theirs = getattr(dtypes, name), getattr(torch, name)
    for _ in range(2):
        np.testing.assert_allclose(
            array(functions.randn(shape, dtype=mine)), array(torch.randn(shape, dtype=theirs)), rtol=0, atol=tolerance
        )
    a, b = functions.normal(0.5, 2.0, shape), torch.normal(0.5, 2.0, shape)
    np.testing.assert_allclose(array(a), array(b), rtol=0, atol=1e-5)


def test_fewer_than_16_normal_numbers_are_equal_to_the_bit_and_the_second_of_a_pair_is_kept(torch: Any):
    for count in (3, 2, 15, 1):
        assert_same_bits(functions.randn(count), torch.randn(count))
    assert_same_bits(random.get_rng_state(), torch.get_rng_state())


@pytest.mark.parametrize("name", ["int64", "int32", "int16", "int8", "uint8", "bool", "float32"])
def test_integers_are_equal(torch: Any, name: str):
    high = 2 if name == "bool" else 100
    mine, theirs = getattr(dtypes, name), getattr(torch, name)
    assert_same_bits(functions.randint(high, (5, 6), dtype=mine), torch.randint(high, (5, 6), dtype=theirs))
    a = tensor(np.zeros(40, mine.numpy))
    assert_same_bits(a.random_(), torch.zeros(40, dtype=theirs).random_())


@pytest.mark.parametrize("range_", [2**28 - 1, 2**28, 2**32 - 1, 2**32, 2**50])
def test_wide_ranges_of_integers_take_two_words(torch: Any, range_: int):
    assert_same_bits(functions.randint(-5, range_ - 5, (9,)), torch.randint(-5, range_ - 5, (9,)))


@pytest.mark.parametrize("n", [0, 1, 2, 10, 3000])
def test_permutations_are_equal(torch: Any, n: int):
    assert_same_bits(functions.randperm(n), torch.randperm(n))


def test_normal_takes_tensors(torch: Any):
    mean, std = np.arange(20, dtype=np.float32), np.full((2, 20), 0.5, np.float32)
    a = functions.normal(tensor(mean), tensor(std))
    np.testing.assert_allclose(array(a), array(torch.normal(torch.tensor(mean), torch.tensor(std))), atol=1e-6)
    b = functions.normal(tensor(mean), 2.0)
    np.testing.assert_allclose(array(b), array(torch.normal(torch.tensor(mean), 2.0)), atol=2e-6)


def test_state_moves_to_and_from_pytorch(torch: Any):
    torch.randn(7)
    random.set_rng_state(tensor(torch.get_rng_state().numpy()))
    assert random.initial_seed() == torch.initial_seed()
    assert_same_bits(functions.randn(5), torch.randn(5))
    torch.set_rng_state(torch.from_numpy(random.get_rng_state().numpy()))
    assert_same_bits(functions.rand(700), torch.rand(700))


def test_known_numbers():
    random.manual_seed(0)
    assert functions.rand(3).tolist() == [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]
    assert random.manual_seed(0) is random.default_generator
    assert functions.randint(0, 10, (3,)).tolist() == [4, 9, 3]


def test_a_generator_has_a_stream_of_its_own():
    own = Generator().manual_seed(3)
    random.manual_seed(3)
    a = functions.rand(4)
    assert functions.rand(4, generator=own).tolist() == a.tolist()
    again = own.clone_state()
    assert functions.randn(3, generator=own).tolist() == functions.randn(3, generator=again).tolist()


def test_fork_rng_restores_the_stream():
    random.manual_seed(5)
    with random.fork_rng():
        inside = functions.rand(3)
    assert functions.rand(3).tolist() == inside.tolist()


def test_like_and_gradient():
    x = leaf(np.zeros((2, 3)))
    assert fills.rand_like(x).dtype is dtypes.float64
    assert fills.randn_like(x, dtype=dtypes.float32).shape == (2, 3)
    assert set(fills.randint_like(x, 3, 5).numpy().ravel()) <= {3.0, 4.0}
    assert functions.randn(2, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.normal_()


def test_a_draw_that_fails_draws_nothing():
    random.manual_seed(1)
    before = random.get_rng_state().tolist()
    for bad in (
        lambda: functions.rand(3, dtype=dtypes.int64),
        lambda: functions.randint(5, 5, (3,)),
        lambda: functions.randint(0, 300, (3,), dtype=dtypes.uint8),
        lambda: leaf(np.zeros(3)).uniform_(),
        lambda: tensor(np.zeros(3)).normal_(0, -1),
        lambda: functions.bernoulli(tensor(np.array([0.5, 2.0]))),
    ):
        with pytest.raises((RuntimeError, NotImplementedError)):
            bad()
    assert random.get_rng_state().tolist() == before


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: functions.rand("a"), TypeError, "must be tuple of ints, not str"),
        (lambda: functions.randn(2, -1), RuntimeError, r"negative dimension -1: \[2, -1\]"),
        (lambda: functions.randn(3, dtype=dtypes.int64), NotImplementedError, "\"normal_kernel_cpu\" .* 'Long'"),
        (lambda: tensor(np.zeros(3, np.float32)).uniform_(-3e38, 3e38), RuntimeError, "result in to-from to exceed"),
        (lambda: functions.randint(2.5, (3,)), TypeError, "argument 'high' .* must be int, not float"),
        (lambda: random.manual_seed(2**64), ValueError, "Overflow when unpacking long long"),
        (lambda: Generator().manual_seed(2.5), RuntimeError, "expected a long, but got float"),
        (lambda: Generator("cuda"), AssertionError, "not compiled with CUDA"),
        (lambda: random.set_rng_state(tensor(np.zeros(3, np.uint8))), RuntimeError, "size 5056 but .* to be 3"),
        (lambda: random.set_rng_state(tensor(np.zeros(3))), TypeError, "must be a torch.ByteTensor"),
    ],
)
def test_errors_are_pytorchs(call: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call()


class Recorder(Interpreter):
    """An interpreter that keeps the draws it is handed, and makes them later."""

    immediate = False

    def __init__(self):
        self.draws: list[Any] = []

    def random(self, draw: Any, shape: tuple[int, ...], dtype: np.dtype, generator: Any, like: Any) -> Tensor:
        assert generator is random.default_generator
        self.draws.append(functools.partial(draw, shape))
        return tensor(np.zeros(shape, dtype))

    def at_each_call(self, action: Any, generator: Any) -> None:
        if generator is random.default_generator:  # devices that other tests have used have their own
            self.draws.append(action)


def test_a_trace_is_handed_the_draw_itself():
    random.manual_seed(7)
    recorder = Recorder()
    with interpreting(recorder):
        functions.rand(3)
        functions.randn(20)
        functions.randperm(4)
    replayed = [draw() for draw in recorder.draws] + [draw() for draw in recorder.draws]
    random.manual_seed(7)
    in_order = (lambda: functions.rand(3), lambda: functions.randn(20), lambda: functions.randperm(4))
    eager = [draw().numpy() for _ in range(2) for draw in in_order]
    for a, b in zip(replayed, eager, strict=True):
        np.testing.assert_array_equal(a, b)


def test_seeding_under_a_trace_is_done_at_each_call():
    recorder = Recorder()
    random.manual_seed(3)
    with interpreting(recorder):
        random.manual_seed(7)
        functions.rand(2)
    before = functions.rand(2)  # the trace itself has not seeded
    random.manual_seed(3)
    np.testing.assert_array_equal(before.numpy(), functions.rand(2).numpy())
    drawn = [[draw() for draw in recorder.draws][-1] for _ in range(2)]
    random.manual_seed(7)
    for array in drawn:
        np.testing.assert_array_equal(array, functions.rand(2).numpy())
        random.manual_seed(7)


def test_numbers_for_memory_in_another_order_are_pytorchs(torch: Any):
    import eager

    def drawn(t: Any) -> list[Any]:
        F, x = t.nn.functional, t.full((6, 4), 0.4).t()
        return [
            t.empty_like(x).uniform_(), t.rand_like(x), t.bernoulli(x), t.bernoulli(x, 0.4),
            t.zeros_like(x).bernoulli_(x),
            t.zeros(4, 6).bernoulli_(x), F.dropout(x), F.alpha_dropout(x, 0.5, True),
            F.dropout(x[:, ::2]),
            F.dropout(t.ones(5).expand(4, 5)), F.dropout(t.ones(4, 1).expand(4, 5)), t.multinomial(x, 2), t.rand(2),
        ]  # fmt: skip

    for mine, theirs in zip(drawn(eager), drawn(torch), strict=True):
        np.testing.assert_allclose(array(mine), array(theirs), rtol=1e-6)


def test_an_encoder_layer_in_training_draws_pytorchs_numbers(torch: Any):
    import eager

    def run(t: Any) -> Any:
        return t.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True)(t.randn(3, 5, 8)).detach()

    np.testing.assert_allclose(array(run(eager)), array(run(torch)), atol=1e-5)


DRAWS: dict[str, Callable[..., eager.Tensor]] = {
    "rand": lambda **k: eager.rand(20, **k),
    "randn": lambda **k: eager.randn(20, **k),
    "randint": lambda **k: eager.randint(9, (20,), **k),
    "randperm": lambda **k: eager.randperm(20, **k),
    "normal": lambda **k: eager.normal(0.0, 1.0, (20,), **k),
    "rand_like": lambda **k: eager.rand_like(eager.ones(20), **k),
    "randn_like": lambda **k: eager.randn_like(eager.ones(20), **k),
    "randint_like": lambda **k: eager.randint_like(eager.ones(20), 9, **k),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_device_that_is_named_draws_what_the_default_does(name: str):
    drawn: list[Any] = []
    for where in (None, "cpu", "cpu:0", eager.device("cpu"), eager.device("cpu", 0), eager.device("cpu")):
        eager.manual_seed(0)
        drawn.append(DRAWS[name](device=where).tolist())
    assert all(numbers == drawn[0] for numbers in drawn)


def test_uniform_numbers_of_a_huge_range_are_finite():
    eager.manual_seed(0)
    small = eager.empty(100, dtype=eager.float64).uniform_(-1, 1)
    eager.manual_seed(0)
    huge = eager.empty(100, dtype=eager.float64).uniform_(-(2.0**1000), 2.0**1000)
    assert eager.equal(huge, small * 2.0**1000)
