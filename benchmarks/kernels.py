"""The heavy kernels, forward and backward: eager beside PyTorch, lowered graphs beside idiomatic JAX.

Run: python benchmarks/kernels.py [name ...]

Each workload is f(*arrays) in PyTorch's API and the same in JAX; what is timed is the value of sum(f * c) and its
gradient with respect to the float operands. PyTorch needs the extra `torch`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from timing import interleaved, one_core

one_core()

import jax  # noqa: E402  (after one_core)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import eager  # noqa: E402
import graphc  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)

rng = np.random.default_rng(0)


class Kernel(NamedTuple):
    """A kernel in both libraries' terms, and its operands."""

    pytorch: Callable[..., Any]
    jax: Callable[..., Any]
    operands: tuple[np.ndarray, ...]


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def places(high: int, *shape: int) -> np.ndarray:
    return rng.integers(0, high, shape)


def _conv(x: Any, w: Any, padding: int = 1, groups: int = 1) -> Any:
    around = ((padding, padding),) * 2
    kinds = ("NCHW", "OIHW", "NCHW")
    return lax.conv_general_dilated(x, w, (1, 1), around, dimension_numbers=kinds, feature_group_count=groups)


def _max_pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)))


def _avg_pool(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4


def _layer_norm(x: Any, w: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * w + b


def _cross_entropy(x: Any, target: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(x), target[:, None], axis=1).mean()


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(np.float32)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


KERNELS = {
    "depthwise": Kernel(
        lambda t, x, w: t.nn.functional.conv2d(x, w, padding=3, groups=64),
        lambda x, w: _conv(x, w, 3, 64),
        (floats(8, 64, 28, 28), floats(64, 1, 7, 7)),
    ),
    "conv2d": Kernel(
        lambda t, x, w: t.nn.functional.conv2d(x, w, padding=1), _conv, (floats(8, 16, 32, 32), floats(32, 16, 3, 3))
    ),
    "max_pool2d": Kernel(lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1), _max_pool, (floats(8, 32, 32, 32),)),
    "max_pool2d tiles": Kernel(
        lambda t, x: t.nn.functional.max_pool2d(x, 2),
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
        (floats(8, 32, 32, 32),),
    ),
    "avg_pool2d": Kernel(lambda t, x: t.nn.functional.avg_pool2d(x, 2), _avg_pool, (floats(8, 32, 32, 32),)),
    "softmax": Kernel(lambda t, x: t.softmax(x, -1), jax.nn.softmax, (floats(256, 1024),)),
    "layer_norm": Kernel(
        lambda t, x, w, b: t.nn.functional.layer_norm(x, (512,), w, b),
        _layer_norm,
        (floats(256, 512), floats(512), floats(512)),
    ),
    "cross_entropy": Kernel(
        lambda t, x, y: t.nn.functional.cross_entropy(x, y), _cross_entropy, (floats(256, 1000), places(1000, 256))
    ),
    "attention": Kernel(
        lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v),
        _attention,
        (floats(4, 8, 128, 64), floats(4, 8, 128, 64), floats(4, 8, 128, 64)),
    ),
    "cumsum": Kernel(lambda t, x: t.cumsum(x, 1), lambda x: jnp.cumsum(x, 1), (floats(512, 512),)),
    "sort": Kernel(
        lambda t, x: t.sort(x, 1)[0],
        lambda x: jnp.take_along_axis(x, jnp.argsort(lax.stop_gradient(x), axis=1), axis=1),
        (floats(256, 512),),
    ),
    "scatter": Kernel(
        lambda t, x, i, y: t.scatter(x, 1, i, y),
        lambda x, i, y: x.at[jnp.arange(len(x))[:, None], i].set(y),
        (floats(256, 512), np.stack([rng.permutation(512)[:128] for _ in range(256)]), floats(256, 128)),
    ),
    "scatter_add": Kernel(
        lambda t, x, i, y: t.scatter_add(x, 1, i, y),
        lambda x, i, y: x.at[jnp.arange(len(x))[:, None], i].add(y),
        (floats(256, 512), places(512, 256, 256), floats(256, 256)),
    ),
    "index_select": Kernel(
        lambda t, x, i: t.index_select(x, 0, i), lambda x, i: x[i], (floats(1000, 128), places(1000, 2048))
    ),
}


def eagerly(t: Any, kernel: Kernel) -> Callable[[], object]:
    """Forward and backward in PyTorch's API."""
    tensors = [t.tensor(a, requires_grad=a.dtype.kind == "f") for a in kernel.operands]
    c = t.tensor(np.ones(tuple(kernel.pytorch(t, *tensors).shape), np.float32))
    leaves = [x for x in tensors if x.requires_grad]

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        kernel.pytorch(t, *tensors).backward(c)

    return step


def compiled(kernel: Kernel) -> dict[str, Callable[[], object]]:
    """The value and gradients by JAX's idiom and by the lowered graph, on the same arrays of JAX's."""
    wrt = [k + 1 for k, a in enumerate(kernel.operands) if a.dtype.kind == "f"]
    with jax.enable_x64(True):  # indices are int64, as in PyTorch
        arrays = [jnp.asarray(a) for a in kernel.operands]
        c = jnp.asarray(floats(*jax.eval_shape(kernel.jax, *arrays).shape))
        plain = jax.jit(jax.value_and_grad(lambda c, *given: (kernel.jax(*given) * c).sum(), argnums=wrt))
        theirs = plain(c, *arrays)

    def loss(c: Any, *given: Any) -> Any:
        return (kernel.pytorch(eager, *given) * c).sum()

    graph = graphc.trace(loss, eager.tensor(np.asarray(c)), *map(eager.tensor, kernel.operands))
    names = [graph.input_names[k] for k in wrt]
    program = graphc.lower(graphc.optimize(graphc.gradients(graph, wrt=names, values=True)))
    value, gradients = program(c, *arrays)
    for a, b in zip((theirs[0], *theirs[1]), (value, *gradients.values()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)

    def bare() -> object:
        with jax.enable_x64(True):
            return jax.block_until_ready(plain(c, *arrays))

    return {"jax": bare, "graphc": lambda: jax.block_until_ready(program.call(c, *arrays))}


def main() -> None:
    print(f"{'forward and backward':<20} {'eager / PyTorch':>16} {'lowered / JAX':>16}")
    for name, kernel in KERNELS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        beside = "not installed"
        if torch is not None:
            t = interleaved({"torch": eagerly(torch, kernel), "eager": eagerly(eager, kernel)}, rounds=15)
            beside = f"{t.ratio['eager']:.2f}"
        t = interleaved(compiled(kernel), rounds=15)
        print(f"{name:<20} {beside:>16} {t.ratio['graphc']:>16.2f}", flush=True)


if __name__ == "__main__":
    main()
