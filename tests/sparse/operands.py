"""The sparse operands of the tests, by name: made of the same NumPy arrays in this library and in PyTorch."""

from __future__ import annotations

import numpy as np

M, N = 4, 6
LAYOUTS = ("coo", "unsorted", "csr", "csc", "bsr", "bsc")
EDGES = ("nothing", "one", "no_rows")


def numbers(dtype, *shape, seed=0):
    """Small numbers of a dtype, none of them 0, some of them negative."""
    rng = np.random.default_rng(seed)
    found = rng.integers(1, 9, shape) * rng.choice((-1, 1), shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.integers(1, 9, shape)
    return (found if np.dtype(dtype).kind != "f" else found / 4).astype(dtype)


def array(dtype, name, shape=(M, N)):
    """The dense values behind an operand."""
    found = numbers(dtype, *shape, seed=1)
    kept = np.random.default_rng(2).random(shape) < {"nothing": 0.0, "one": 0.0}.get(name, 0.4)
    if name == "one":
        kept[1, 2] = True
    return np.where(kept, found, np.zeros((), dtype))


def sparse(t, name, dtype=np.float64):
    """A sparse matrix (M, N) in the library `t`; "unsorted" has several elements for one place."""
    if name == "no_rows":
        return t.sparse_coo_tensor(t.zeros(2, 0, dtype=t.int64), tensor(t, numbers(dtype, 0)), (0, N))
    dense = array(dtype, name)
    if name == "unsorted":
        where = np.stack(np.nonzero(dense))
        order = np.random.default_rng(3).permutation(where.shape[1])
        twice = np.concatenate([where[:, order], where[:, :3]], 1)
        values = np.concatenate([dense[tuple(where[:, order])], numbers(dtype, 3, seed=4)])
        return t.sparse_coo_tensor(tensor(t, twice), tensor(t, values), (M, N))
    whole = tensor(t, dense)
    if name in ("bsr", "bsc"):
        return getattr(whole, f"to_sparse_{name}")((2, 3))
    return getattr(whole, f"to_sparse_{name}")() if name in ("csr", "csc") else whole.to_sparse()


def tensor(t, values):
    """An array as a tensor with memory of its own."""
    return t.from_numpy(np.array(values))


def dense(t, dtype, *shape, seed=5):
    """A dense operand."""
    return tensor(t, numbers(dtype, *shape, seed=seed))


def plain(x):
    """The values of a tensor of either library, as an array."""
    x = x.detach()
    return (x.to_dense() if str(x.layout) != "torch.strided" else x).numpy()


# name -> (f(t, s), whether f is linear in s: then integers will do, too)
FUNCTIONS = {
    "s @ d": (lambda t, s: s @ dense(t, of(s), N, 3), True),
    "s @ v": (lambda t, s: s @ dense(t, of(s), N), True),
    "d @ s": (lambda t, s: dense(t, of(s), 3, s.shape[0]) @ s, True),
    "v @ s": (lambda t, s: dense(t, of(s), s.shape[0]) @ s, True),
    "s @ s.t()": (lambda t, s: s @ s.t(), False),
    "mm": (lambda t, s: t.mm(s, dense(t, of(s), N, 3)), True),
    "mv": (lambda t, s: t.mv(s, dense(t, of(s), N)), True),
    "addmm": (lambda t, s: t.addmm(dense(t, of(s), s.shape[0], 3), s, dense(t, of(s), N, 3), beta=2, alpha=3), True),
    "linear": (lambda t, s: t.nn.functional.linear(s, dense(t, of(s), 3, N)), True),
    "s + s": (lambda t, s: s + s, True),
    "s + other": (lambda t, s: s + other(t, s), True),
    "s - other": (lambda t, s: s - other(t, s), True),
    "add alpha": (lambda t, s: t.add(s, other(t, s), alpha=3), True),
    "s * s": (lambda t, s: s * s, False),
    "s * other": (lambda t, s: s * other(t, s), True),
    "s * d": (lambda t, s: s * dense(t, of(s), *s.shape), True),
    "s * row": (lambda t, s: s * dense(t, of(s), N), True),
    "s * 2": (lambda t, s: s * 2, True),
    "2 * s": (lambda t, s: 2 * s, True),
    "s / 2": (lambda t, s: s / 2, True),
    "s / t": (lambda t, s: s / t.tensor(2.0), True),
    "s ** 2": (lambda t, s: s**2, False),
    "d + s": (lambda t, s: dense(t, of(s), *s.shape) + s, True),
    "d - s": (lambda t, s: dense(t, of(s), *s.shape) - s, True),
    "add_": (lambda t, s: dense(t, of(s), *s.shape).add_(s, alpha=2), True),
    "-s": (lambda t, s: -s, True),
    "abs": (lambda t, s: abs(s), False),
    "clone": (lambda t, s: s.clone(), True),
    "coalesce": (lambda t, s: s.coalesce() if s.is_sparse else s, True),
    "t": (lambda t, s: s.t(), True),
    "transpose": (lambda t, s: s.transpose(0, 1), True),
    "sum": (lambda t, s: s.sum(), True),
    "sum 0": (lambda t, s: s.sum(0), True),
    "sum 1": (lambda t, s: s.sum((1,)), True),
    "sum 0 keepdim": (lambda t, s: s.sum(0, keepdim=True), True),
    "s[1]": (lambda t, s: s[1], True),
    "s[:, 2]": (lambda t, s: s[:, 2], True),
    "s[1, 2]": (lambda t, s: s[1, 2], True),
    "s[-1]": (lambda t, s: s[-1], True),
    "s[1:3, ::2]": (lambda t, s: s[1:3, ::2], True),
    "select": (lambda t, s: s.select(1, 3), True),
    "narrow": (lambda t, s: t.narrow_copy(s, 1, 2, 3), True),
    "index_select 0": (lambda t, s: s.index_select(0, t.tensor([2, 0, 2])), True),
    "index_select 1": (lambda t, s: s.index_select(1, t.tensor([5, 1, 1, 3])), True),
    "cat 0": (lambda t, s: t.cat([s, s * 2]), True),
    "cat 1": (lambda t, s: t.cat([s, s, s], 1), True),
    "stack": (lambda t, s: t.stack([s, s], 1), True),
    "unsqueeze": (lambda t, s: s.unsqueeze(1), True),
    "to_sparse_coo": (lambda t, s: s.to_sparse_coo(), True),
    "to_sparse_csr": (lambda t, s: s.to_sparse_csr(), True),
    "to_sparse_csc": (lambda t, s: s.to_sparse_csc(), True),
    "to_sparse_bsr": (lambda t, s: s.to_sparse_bsr((2, 2)), True),
    "double": (lambda t, s: s.to(t.complex128), True),
    "sin": (lambda t, s: t.sin(s), False),
    "tanh": (lambda t, s: t.tanh(s), False),
    "expm1": (lambda t, s: t.expm1(s), False),
    "square": (lambda t, s: t.square(s), False),
    "relu": (lambda t, s: t.relu(s), False),
    "sign": (lambda t, s: t.sign(s), False),
    "trunc": (lambda t, s: t.trunc(s), False),
    "isnan": (lambda t, s: t.isnan(s), False),
    "nan_to_num": (lambda t, s: t.nan_to_num(s), False),
    "norm": (lambda t, s: s.norm(), False),
    "any": (lambda t, s: s.any(), False),
    "mask": (lambda t, s: dense(t, of(s), *s.shape).sparse_mask(s.to_dense().to_sparse()), False),
}  # fmt: skip


def of(x):
    """The NumPy dtype of a tensor of either library."""
    return np.dtype(str(x.dtype).removeprefix("torch."))


def other(t, s):
    """Another matrix of the shape and layout of `s`."""
    found = tensor(t, np.where(np.random.default_rng(7).random(s.shape) < 0.5, numbers(of(s), *s.shape, seed=8), 0))
    found = found.to(s.dtype)
    kind = str(s.layout).removeprefix("torch.")
    if kind in ("sparse_bsr", "sparse_bsc"):
        return getattr(found, f"to_{kind}")((2, 3))
    return found if kind == "strided" else getattr(found, f"to_{kind}")()
