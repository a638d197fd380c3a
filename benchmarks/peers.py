"""The tiny chains under other pure-Python engines, where they are installed: HIPS autograd, MyGrad, tinygrad."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

Step = Callable[[], object]
STEPS = 50


def _arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(8).astype(np.float32), rng.standard_normal(8).astype(np.float32)


def hips_autograd() -> tuple[Step, Step]:
    import autograd
    import autograd.numpy as anp

    x, w = _arrays()

    def chain(x, w):
        h = x
        for _ in range(STEPS):
            h = anp.tanh(h * w + x) - w
        return anp.sum(h)

    def scalars(x):
        h = x
        for _ in range(STEPS):
            h = anp.tanh(h * 1.5 + 0.5) - 0.25
        return anp.sum(h)

    gradient, scalar_gradient = autograd.grad(chain, (0, 1)), autograd.grad(scalars)
    return lambda: gradient(x, w), lambda: scalar_gradient(x)


def mygrad() -> tuple[Step, Step]:
    import mygrad as mg

    a, b = _arrays()

    def chain():
        x, w = mg.tensor(a), mg.tensor(b)
        h = x
        for _ in range(STEPS):
            h = mg.tanh(h * w + x) - w
        h.sum().backward()

    def scalars():
        h = mg.tensor(a)
        for _ in range(STEPS):
            h = mg.tanh(h * 1.5 + 0.5) - 0.25
        h.sum().backward()

    return chain, scalars


def tinygrad() -> tuple[Step, Step]:
    from tinygrad import Tensor

    a, b = _arrays()

    def chain():
        x, w = Tensor(a), Tensor(b)
        h = x
        for _ in range(STEPS):
            h = (h * w + x).tanh() - w
        for gradient in h.sum().gradient(x, w):
            gradient.numpy()

    def scalars():
        x = Tensor(a)
        h = x
        for _ in range(STEPS):
            h = (h * 1.5 + 0.5).tanh() - 0.25
        h.sum().gradient(x)[0].numpy()

    return chain, scalars


def installed() -> Iterator[tuple[str, tuple[Step, Step]]]:
    """(name, (chain, chain with scalars)) of each engine that can be imported and runs; the others are named."""
    for make in (hips_autograd, mygrad, tinygrad):
        name = make.__name__
        try:
            steps = make()
            for step in steps:
                step()
        except Exception as error:
            print(f"{name} is left out: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        else:
            yield name, steps
