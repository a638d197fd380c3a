"""Training steps on a mesh of eight devices, beside steps written by hand.

`python benchmarks/sharded_steps.py [--bytes] [name ...]`.

By hand: `jax.jit` with `NamedSharding`, `with_sharding_constraint` and donated state. Losses are compared first. Then
the collectives of both compiled programs, and the CPU time of a step, interleaved; the devices are threads. Both
return the gradients, which PyTorch's `.grad` shows after a step. A call of graphc costs some 50 us more (the mesh is
made known, arguments are looked at), which tiny steps show.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()

import jax  # noqa: E402  (after the flag)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as Spec  # noqa: E402

import eager as torch  # noqa: E402
import graphc  # noqa: E402
from graphc.sharding import P, compiled, total  # noqa: E402
from tests.sharding.models import DEEP, HEADS, MOMENTUM, QUICK, RATE, Case, step_of  # noqa: E402
from timing import interleaved, row  # noqa: E402

STEPS = 5
Parameters = dict[str, jax.Array]
Specs = dict[str, Spec]


def linear(p: Parameters, name: str, x: Any) -> Any:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def normalized(p: Parameters, name: str, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def mlp(p: Parameters, x: Any) -> Any:
    return linear(p, "2", jax.nn.relu(linear(p, "0", x)))


def block(p: Parameters, x: Any) -> Any:
    batch, length, width = x.shape
    n = normalized(p, "ln1", x)
    q, k, v = (linear(p, name, n).reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3) for name in "qkv")
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), q @ k.swapaxes(-1, -2) / (width / HEADS) ** 0.5,
                       -jnp.inf)  # fmt: skip
    x = x + linear(p, "o", (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, width))
    return x + linear(p, "down", jax.nn.gelu(linear(p, "up", normalized(p, "ln2", x)), approximate=False))


def words(p: Parameters, x: Any) -> Any:
    return linear(p, "2", p["0.weight"][x].reshape(len(x), -1))


def convolved(p: Parameters, name: str, x: Any, padding: int) -> Any:
    sides = [(padding, padding)] * 2
    return lax.conv_general_dilated(x, p[f"{name}.weight"], (1, 1), sides) + p[f"{name}.bias"][:, None, None]


def cnn(p: Parameters, x: Any) -> Any:
    x = jax.nn.relu(convolved(p, "0", x, 1))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return linear(p, "5", convolved(p, "3", x, 0).reshape(len(x), -1))


def gru(p: Parameters, x: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        a = x @ p["gru.weight_ih_l0"].T + p["gru.bias_ih_l0"]
        b = h @ p["gru.weight_hh_l0"].T + p["gru.bias_hh_l0"]
        (ar, az, an), (br, bz, bn) = (jnp.split(y, 3, axis=-1) for y in (a, b))
        z = jax.nn.sigmoid(az + bz)
        return (1 - z) * jnp.tanh(an + jax.nn.sigmoid(ar + br) * bn) + z * h, None

    h, _ = lax.scan(step, jnp.zeros((len(x), 16), x.dtype), x.swapaxes(0, 1))
    return linear(p, "out", h)


def rows_normalized(p: Parameters, x: Any) -> Any:
    return linear(p, "2", normalized(p, "1", p["0.weight"][x]))


def by_rule(rules: dict[str, Spec]) -> Callable[[Parameters], Specs]:
    """The specs of parameters by the first part of their names."""
    return lambda p: {name: rules.get(name, Spec()) for name in p}


def first_dim(p: Parameters) -> Specs:
    """FSDP: the first dim that divides."""
    found: Specs = {}
    for name, a in p.items():
        dim = next((d for d, n in enumerate(a.shape) if n % 8 == 0), None)
        found[name] = Spec() if dim is None else Spec(*[None] * dim, "data")
    return found


_COLUMNS = {f"{n}.{kind}": Spec("model") for n in ("q", "k", "v", "up") for kind in ("weight", "bias")}
_ROWS = {f"{n}.weight": Spec(None, "model") for n in ("o", "down")}


class ByHand(NamedTuple):
    """A model, where its parameters lie, and whether they are gathered before they are computed with."""

    model: Callable[[Parameters, Any], Any]
    specs: Callable[[Parameters], Specs]
    gathered: bool = False


BY_HAND = {
    "mlp": ByHand(mlp, by_rule({})),
    "mlp, data x model": ByHand(
        mlp, by_rule({"0.weight": Spec("model"), "0.bias": Spec("model"), "2.weight": Spec(None, "model")})
    ),
    "mlp, fsdp": ByHand(mlp, first_dim, gathered=True),
    "gpt": ByHand(block, by_rule({})),
    "gpt, data x model": ByHand(block, by_rule({**_COLUMNS, **_ROWS})),
    "gpt, fsdp": ByHand(block, first_dim, gathered=True),
    "words by rows": ByHand(words, by_rule({"0.weight": Spec("model")})),
    "words by vectors": ByHand(words, by_rule({"0.weight": Spec(None, "model")})),
    "normalized words by vectors": ByHand(rows_normalized, by_rule({"0.weight": Spec(None, "model")})),
    "cnn": ByHand(cnn, by_rule({})),
    "cnn by channels": ByHand(
        cnn, by_rule({"0.weight": Spec("model"), "0.bias": Spec("model"), "3.weight": Spec(None, "model")})
    ),
    "gru": ByHand(gru, by_rule({})),
}


class Side(NamedTuple):
    """A call that makes one step and returns its loss, and the text of its compiled program."""

    step: Callable[[], Any]
    hlo: Callable[[], str]


def start(case: Case, scale: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """The model of a case and a batch, `scale` times as large."""
    torch.manual_seed(0)
    model = case.make()
    shape, target = (scale * case.x[0], *case.x[1:]), (scale * case.y[0], *case.y[1:])
    x = torch.randint(0, 64, shape) if case.words else torch.randn(shape)
    return model, x.numpy(), torch.randn(target).numpy()


def ours(case: Case, scale: int) -> Side:
    """As the tests of sharding train it."""
    model, a, b = start(case, scale)
    case.placed(model)
    settings: dict[str, Any] = {"mesh": case.mesh, "in_shardings": P("data")}
    run = graphc.compile(step_of(model), **settings, state_shardings=case.rules)
    onto = graphc.compile(lambda x, y: (x + 0, y + 0), **settings, out_shardings=P("data"))
    x, y = onto(torch.from_numpy(a), torch.from_numpy(b))
    return Side(lambda: run(x, y).item(), lambda: run._last().runner.forward.hlo)


def by_hand(case: Case, hand: ByHand, scale: int) -> Side:
    """The same step in JAX."""
    model, a, b = start(case, scale)
    wide = tuple(case.mesh.shape)
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(wide), ("data", "model")[: len(wide)])
    p = {name: jnp.asarray(t.numpy()) for name, t in model.state_dict().items()}
    lies = {name: NamedSharding(mesh, spec) for name, spec in hand.specs(p).items()}
    batch, whole = NamedSharding(mesh, Spec("data")), NamedSharding(mesh, Spec())

    def loss_of(p: Parameters, x: Any, y: Any) -> Any:
        if hand.gathered:
            p = {name: lax.with_sharding_constraint(a, whole) for name, a in p.items()}
        return ((hand.model(p, x) - y) ** 2).mean()

    def update(p: Parameters, velocity: Parameters, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(p, x, y)
        grads = {name: lax.with_sharding_constraint(g, lies[name]) for name, g in grads.items()}
        velocity = {name: MOMENTUM * v + grads[name] for name, v in velocity.items()}
        return loss, {name: a - RATE * velocity[name] for name, a in p.items()}, velocity, grads

    kept = {"in_shardings": (lies, lies, batch, batch), "out_shardings": (whole, lies, lies, lies)}
    jitted = jax.jit(update, **kept, donate_argnums=(0, 1))
    x, y = jax.device_put(a, batch), jax.device_put(b, batch)
    state = [jax.device_put(p, lies), jax.device_put({name: jnp.zeros_like(v) for name, v in p.items()}, lies)]
    text = jitted.lower(*state, x, y).compile().as_text()

    def step() -> Any:
        nonlocal state
        loss, *state, _ = jitted(*state, x, y)
        return loss.item()

    return Side(step, lambda: text or "")


def compared(name: str, scale: int = 1) -> tuple[dict[str, Side], dict[str, dict[str, tuple[int, int]]]]:
    """Both sides of a case after some steps, and what each exchanges. AssertionError where losses are not the same."""
    case = {**QUICK, **DEEP}[name]
    sides = {"by hand": by_hand(case, BY_HAND[name], scale), "graphc": ours(case, scale)}
    losses = [[float(side.step()) for _ in range(STEPS)] for side in sides.values()]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    return sides, {side: total(compiled(sides[side].hlo())) for side in sides}


def main(arguments: list[str]) -> int:
    """Print a row for each case, of the names given; without times for `--bytes`. 1 if graphc exchanges more bytes."""
    timed, names = "--bytes" not in arguments, [a for a in arguments if a != "--bytes"]
    more = False
    for name in [n for n in BY_HAND if not names or any(part in n for part in names)]:
        sides, exchanged = compared(name, 128 if timed else 1)
        timing = interleaved({side: s.step for side, s in sides.items()}, clock=time.process_time) if timed else None
        for side, found in exchanged.items():
            text = ", ".join(f"{count} {kind} ({size:,})" for kind, (count, size) in found.items())
            times = "" if timing is None else f"{timing.seconds[side] * 1e6:8,.0f} us, {timing.ratio[side]:.2f}"
            row(f"{name}, {side}", times, text)
        hand, ours = (sum(size for _, size in found.values()) for found in exchanged.values())
        more = more or ours > hand
    return int(more)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
