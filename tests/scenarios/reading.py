"""Every way to read a captured tensor gives its values at each call, not those that it was traced with."""

from __future__ import annotations

import copy

import numpy as np

import eager as torch
from tests.scenarios.harness import attempt, program

FLOATS = {
    "data": lambda w, x: w.data * x,
    "detach": lambda w, x: w.detach() + x,
    "to a dtype": lambda w, x: w.to(torch.float64) * 2,
    "cpu": lambda w, x: w.cpu() * x,
    "contiguous": lambda w, x: w.contiguous() * x,
    "as_strided": lambda w, x: w.as_strided((2,), (1,)) + 1,
    "unfold": lambda w, x: w.unfold(0, 2, 1).sum(1),
    "copy": lambda w, x: copy.copy(w) * x,
    "deepcopy": lambda w, x: copy.deepcopy(w) * x,
    "asarray": lambda w, x: torch.asarray(w) * x,
    "as_tensor": lambda w, x: torch.as_tensor(w) * x,
    "tensor": lambda w, x: w.clone().detach() * x,
    "new_tensor": lambda w, x: x.new_tensor(w.tolist()),
    "numpy": lambda w, x: torch.from_numpy(w.numpy() * 2) + x,
    "array": lambda w, x: x + float(np.asarray(w).sum()),
    "item": lambda w, x: x * w[0].item(),
    "float": lambda w, x: x * float(w.sum()),
    "tolist": lambda w, x: x * sum(w.tolist()),
    "bool": lambda w, x: x if w.sum() > 0 else -x,
    "unbind": lambda w, x: sum(w.unbind()) * x,
    "iteration": lambda w, x: sum(w) * x,
    "max": lambda w, x: x * max(w),
    "format": lambda w, x: x + len(f"{w[0].item():.3f}"),
    "equal": lambda w, x: x + int(torch.equal(w, x)),
    "allclose": lambda w, x: x + int(torch.allclose(w, x)),
    "topk": lambda w, x: w.topk(2)[0],
    "sort": lambda w, x: x[w.argsort()],
    "polyval": lambda w, x: w[0] * x**2 + w[1],
    "histc": lambda w, x: w.histc(3),
    "stack": lambda w, x: torch.stack([w, x]),
    "tensor of items": lambda w, x: torch.tensor([w[0].item(), 2.0]) + x[:2],
    "data of a view": lambda w, x: w[:2].data + x[:2],
    "parameter": lambda w, x: torch.nn.Parameter(w) * x,
    "set_data": lambda w, x: torch.nn.Parameter(torch.zeros(3)).data.copy_(w) * x,
}
INTS = {
    "index": lambda i, x: x[i],
    "index of one": lambda i, x: x[i[0]],
    "python index": lambda i, x: x[int(i[0])],
    "range": lambda i, x: x[: i[0]],
    "one_hot": lambda i, x: torch.nn.functional.one_hot(i, 3) * x,
    "bincount": lambda i, x: torch.bincount(i, minlength=3) * x,
    "gather": lambda i, x: x.gather(0, i),
    "repeat": lambda i, x: x.repeat(int(i.sum())),
    "embedding": lambda i, x: torch.nn.functional.embedding(i, x[:, None]),
    "full": lambda i, x: torch.full((2,), i[0].item()) + x[0],
    "arange": lambda i, x: torch.arange(int(i.max()) + 1),
    "shape": lambda i, x: torch.zeros(i.tolist()) + x[0],
    "nonzero": lambda i, x: i.nonzero(),
    "unique": lambda i, x: i.unique(),
    "repeat_interleave": lambda i, x: x.repeat_interleave(i),
    "split": lambda i, x: x.split([int(i[0]), 3 - int(i[0])]),
    "narrow": lambda i, x: x.narrow(0, i[0], 1),
    "roll": lambda i, x: x.roll(int(i[0])),
}


@program
def floats(compile):
    found = {}
    for name, f in FLOATS.items():
        w = torch.tensor([1.0, -2.0, 0.5])

        def g(x, f=f, w=w):
            return f(w, x)

        c = compile(g)
        results = [attempt(c, torch.ones(3))]
        w.mul_(-3)
        results.append(attempt(c, torch.ones(3)))
        w.copy_(torch.ones(3))
        results.append(attempt(c, torch.ones(3)))
        found[name] = results
    return found


@program
def integers(compile):
    found = {}
    for name, f in INTS.items():
        i = torch.tensor([0, 1, 2])

        def g(x, f=f, i=i):
            return f(i, x)

        c = compile(g)
        results = []
        for values in ([0, 1, 2], [2, 0, 0], [1, 1, 2], [0, 1, 2]):
            i.copy_(torch.tensor(values))
            results.append(attempt(c, torch.arange(3.0) + 1))
        found[name] = results
    return found


@program
def bytes_of_a_tensor(compile):
    w = torch.ones(3)

    def f(x):
        bits = x.view(torch.int32)
        bits.bitwise_xor_(1 << 20)
        x.view(torch.int16)[0, 0] = 7
        wide = torch.complex(x, x).view(torch.int64), x.view(torch.float64), x[:, ::2].view(torch.int32)
        return w.view(torch.int32), bits, wide, (x > 0).view(torch.uint8), x.t().view(torch.int32)

    c = compile(f)
    x = torch.randn(2, 4)
    return [(c(x), x.clone(), w.add_(0.5)) for _ in range(3)], attempt(compile(lambda x: x.sum().view(torch.int16)), x)


@program
def bytes_of_a_tensor_that_is_not_contiguous(compile):
    return compile(lambda x: x[:, :2].view(torch.int64))(torch.ones(3, 4))
