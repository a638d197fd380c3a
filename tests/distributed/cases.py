"""What collectives do: each case as a program of one process, and what that process must have got.

A program is `f(torch, dist, rank, size)` and returns arrays or other values; `torch` and `dist` are eager's or
PyTorch's. Expected values are worked out here from rank and size alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A program, and `expected(rank, size)`."""

    program: Callable[..., Any]
    expected: Callable[[int, int], Any]


def _values(rank: int, dtype: str = "int64") -> np.ndarray:
    return (np.arange(3) + 2 * rank + 1).astype(dtype)


def _all(size: int) -> np.ndarray:
    return np.stack([_values(k) for k in range(size)])


_NUMPY = {
    "SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "BAND": np.bitwise_and,
    "BOR": np.bitwise_or, "BXOR": np.bitwise_xor,
}  # fmt: skip


def _all_reduce(name: str, dtype: str) -> Case:
    def program(torch: Any, dist: Any, rank: int, size: int) -> Any:
        x = torch.from_numpy(_values(rank, dtype))
        assert dist.all_reduce(x, op=getattr(dist.ReduceOp, name)) is None
        return x.numpy()

    def expected(rank: int, size: int) -> Any:
        return reduce(_NUMPY[name], [_values(k, dtype) for k in range(size)])

    return Case(program, expected)


def _average(torch: Any, dist: Any, rank: int, size: int) -> Any:
    x = torch.full((2, 2), float(rank)).t()  # not contiguous
    work = dist.all_reduce(x, op=dist.ReduceOp.AVG, async_op=True)
    work.wait()
    return x.numpy(), work.is_completed()


def _bools(torch: Any, dist: Any, rank: int, size: int) -> Any:
    x = torch.tensor([rank == 0, False, True])
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x.numpy()


def _slices(torch: Any, dist: Any, rank: int, size: int) -> Any:
    whole = torch.zeros(4, 3)
    dist.all_reduce(whole[1].add_(rank + 1))  # a view: what it is of is written
    return whole.numpy()


def _signed_zero(torch: Any, dist: Any, rank: int, size: int) -> Any:
    x = torch.tensor([-0.0, float("nan"), -1.5] if rank == 1 else [1.0, 2.0, 3.0])
    dist.broadcast(x, src=1)
    return x.numpy(), np.signbit(x.numpy())


def _dtypes(torch: Any, dist: Any, rank: int, size: int) -> Any:
    found = []
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.bool, torch.complex64):
        x = torch.full((2,), rank + 1).to(dtype)
        dist.broadcast(x, src=1)
        found.append(x.to(torch.complex64).real.tolist())
    empty, scalar = torch.zeros(0, 3), torch.tensor(float(rank))
    dist.all_reduce(empty)
    dist.all_reduce(scalar)
    large = torch.tensor([2**40 + rank])
    dist.broadcast(large, src=1)
    return found, tuple(empty.shape), scalar.item(), large.item()


def _reduce(torch: Any, dist: Any, rank: int, size: int) -> Any:
    x = torch.from_numpy(_values(rank))
    dist.reduce(x, dst=size - 1)
    return x.numpy() if rank == size - 1 else None  # PyTorch leaves partial sums elsewhere


def _all_gather(torch: Any, dist: Any, rank: int, size: int) -> Any:
    found = [torch.zeros(3, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(found, torch.from_numpy(_values(rank)))
    flat = torch.zeros(3 * size, dtype=torch.int64)
    dist.all_gather_into_tensor(flat, torch.from_numpy(_values(rank)))
    return [x.numpy() for x in found], flat.numpy()


def _beyond_gloo(torch: Any, dist: Any, rank: int, size: int) -> Any:
    stacked = torch.zeros(size, 3, dtype=torch.int64)
    dist.all_gather_into_tensor(stacked, torch.from_numpy(_values(rank)))
    columns = torch.zeros(3, 4)
    columns[:, 1] = rank + 1.0
    dist.all_reduce(columns[:, 1])
    uneven = [torch.zeros(rank + 1) for _ in range(size)]
    dist.all_to_all(uneven, [torch.full((k + 1,), float(rank)) for k in range(size)])
    return stacked.numpy(), columns.numpy(), [x.numpy() for x in uneven]


def _reduce_scatter(torch: Any, dist: Any, rank: int, size: int) -> Any:
    x, y = torch.zeros(2), torch.zeros(1, 2)
    dist.reduce_scatter(x, [torch.full((2,), float(10 * k + rank)) for k in range(size)])
    dist.reduce_scatter_tensor(y, torch.arange(2.0 * size).reshape(size, 2) + rank)
    return x.numpy(), y.numpy()


def _gather_scatter(torch: Any, dist: Any, rank: int, size: int) -> Any:
    found = [torch.zeros(3, dtype=torch.int64) for _ in range(size)] if rank == 1 else None
    dist.gather(torch.from_numpy(_values(rank)), found, dst=1)
    x = torch.zeros(2)
    dist.scatter(x, [torch.full((2,), float(k)) for k in range(size)] if rank == 1 else None, src=1)
    return found and [f.numpy() for f in found], x.numpy()


def _all_to_all(torch: Any, dist: Any, rank: int, size: int) -> Any:
    found = [torch.zeros(2) for _ in range(size)]
    dist.all_to_all(found, [torch.full((2,), 10.0 * k + rank) for k in range(size)])
    given = list(range(1, size + 1))
    out = torch.zeros(size * (rank + 1), 2)
    dist.all_to_all_single(out, torch.full((sum(given), 2), float(rank)), [rank + 1] * size, given)
    even = torch.zeros(size)
    dist.all_to_all_single(even, torch.arange(float(size)) + 10 * rank)
    return [f.numpy() for f in found], out.numpy(), even.numpy()


def _ring(torch: Any, dist: Any, rank: int, size: int) -> Any:
    right, left, x = (rank + 1) % size, (rank - 1) % size, torch.zeros(2)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, torch.full((2,), float(rank)), right), dist.P2POp(dist.irecv, x, left)]
    )
    for work in works:
        work.wait()
    found = []
    if rank == 0:
        for k in range(1, size):
            y = torch.zeros(3, dtype=torch.int64)
            found.append((dist.recv(y, src=k), y.tolist()))
    else:
        dist.send(torch.from_numpy(_values(rank)), dst=0)
    return x.numpy(), found


def _tags(torch: Any, dist: Any, rank: int, size: int) -> Any:
    if rank == 0:
        works = [dist.isend(torch.tensor([float(tag)]), dst=1, tag=tag) for tag in (7, 8)]
        for work in works:
            work.wait()
        return []
    if rank == 1:
        found = [torch.zeros(1) for _ in range(2)]
        works = [dist.irecv(x, src=0, tag=tag) for x, tag in zip(found, (8, 7), strict=True)]
        for work in works:
            work.wait()
        return [x.item() for x in found]
    return []


def _from_anybody(torch: Any, dist: Any, rank: int, size: int) -> Any:
    if rank:
        dist.send(torch.tensor([float(rank)]), dst=0)
        return []
    found = []
    for _ in range(size - 1):
        x = torch.zeros(1)
        found.append((dist.recv(x), x.item()))
    return sorted(found)


def _objects(torch: Any, dist: Any, rank: int, size: int) -> Any:
    every, same, own = [None] * size, [rank, "x"], [None]
    dist.all_gather_object(every, {"rank": rank})
    dist.broadcast_object_list(same, src=1)
    dist.scatter_object_list(own, [f"object {k}" for k in range(size)] if rank == 0 else None, src=0)
    gathered = [None] * size if rank == 1 else None
    dist.gather_object(rank * 10, gathered, dst=1)
    return every, same, own, gathered


def _groups(torch: Any, dist: Any, rank: int, size: int) -> Any:
    group = dist.new_group([0, size - 1])
    x = torch.tensor([rank + 1.0])
    if rank in (0, size - 1):
        dist.all_reduce(x, group=group)
        y = torch.tensor([float(rank)])
        dist.broadcast(y, src=size - 1, group=group)
        names = dist.get_rank(group), dist.get_world_size(group), dist.get_process_group_ranks(group)
        return x.item(), y.item(), names, dist.get_group_rank(group, size - 1), dist.get_global_rank(group, 1)
    return x.item(), dist.get_rank(group)


def _grid(torch: Any, dist: Any, rank: int, size: int) -> Any:
    ours, _ = dist.new_subgroups(2)
    x = torch.tensor([float(rank)])
    dist.all_reduce(x, group=ours)
    dist.barrier()
    return x.item()


def _recorded(torch: Any, dist: Any, rank: int, size: int) -> Any:
    import importlib

    F = importlib.import_module(f"{dist.__name__}.nn.functional")
    found = []
    for name, function in {
        "all_reduce": lambda x: F.all_reduce(x) * (rank + 1),
        "broadcast": lambda x: F.broadcast(x, 1) * (rank + 1),
        "reduce": lambda x: F.reduce(x * 1, 1) * (rank + 1) if rank == 1 else F.reduce(x * 1, 1) * 0,
        "all_gather": lambda x: torch.stack(list(F.all_gather(x))) * (rank + 1),
        "reduce_scatter": lambda x: F.reduce_scatter(torch.zeros(2), [x * (k + 1) for k in range(size)]),
        "all_to_all": lambda x: torch.stack(
            list(F.all_to_all([torch.zeros(2) for _ in range(size)], [x * (k + 1) for k in range(size)]))
        ) * (rank + 1),
    }.items():  # fmt: skip
        x = torch.full((2,), rank + 1.0, requires_grad=True)
        y = function(x)
        y.sum().backward()
        found.append((name, y.detach().numpy(), x.grad.numpy()))
    return found


def _recorded_expected(rank: int, size: int) -> Any:
    ones, weights = np.ones(2, np.float32), np.arange(1, size + 1, dtype=np.float32)
    total = weights.sum()
    stacked = np.outer(weights, ones)
    return [
        ("all_reduce", total * (rank + 1) * ones, total * ones),
        ("broadcast", 2.0 * (rank + 1) * ones, total * ones if rank == 1 else 0 * ones),
        ("reduce", 2 * total * ones if rank == 1 else 0 * ones, 2 * ones),
        ("all_gather", stacked * (rank + 1), total * ones),
        ("reduce_scatter", total * (rank + 1) * ones, total * ones),
        ("all_to_all", stacked * (rank + 1) ** 2, (weights * weights).sum() * ones),
    ]


def _functional(torch: Any, dist: Any, rank: int, size: int) -> Any:
    import importlib

    F = importlib.import_module(f"{dist.__name__}._functional_collectives")
    meshes = importlib.import_module(f"{dist.__name__}.device_mesh")
    mesh = meshes.init_device_mesh("cpu", (size,), mesh_dim_names=("all",))
    x = torch.from_numpy(_values(rank))
    made = [
        F.all_reduce(x, "sum", dist.group.WORLD),
        F.all_reduce(x, "MAX", mesh),
        F.broadcast(x, 1, (mesh, 0)),
        F.all_gather_single(x[None], 1, (mesh, 0)),
        F.reduce_scatter_single(x.repeat(size), "sum", 0, mesh),
        F.all_to_all_single(x[:1].repeat(size), None, None, mesh),
    ]
    try:
        F.reduce_scatter_single(x.repeat(size)[1:], "sum", 0, mesh)
    except AssertionError as error:
        return [F.wait_tensor(y).numpy() for y in made], str(error)


def _functional_expected(rank: int, size: int) -> Any:
    own = _all(size)
    length = 3 * size - 1
    made = [own.sum(0), own.max(0), own[1], own.reshape(1, -1), own.sum(0), own[:, 0]]
    return made, f"input dimension 0 ({length} must be a multiple of group_size {size})"


_REDUCED = {
    name: ("int64",) if name.startswith("B") else ("int64", "float32") for name in _NUMPY
} | {"SUM": ("int64", "uint8", "float32", "float64")}  # fmt: skip
# what PyTorch documents, and its Gloo refuses or, of views that are not contiguous, gets wrong
BEYOND_GLOO = {"beyond gloo"}


def _several(torch: Any, dist: Any, rank: int, size: int) -> Any:
    xs = [torch.from_numpy(_values(rank)), torch.full((2,), rank)]
    dist.all_reduce_coalesced(xs, async_op=True).wait()
    gathered = [[torch.empty(n, dtype=torch.int64) for n in (2, 3)] for _ in range(size)]
    dist.all_gather_coalesced(gathered, [torch.full((2,), rank), torch.from_numpy(_values(rank))])
    refused = []
    for mistaken in (
        lambda: dist.all_reduce_coalesced([xs[0], xs[1].float()]),
        lambda: dist.all_gather_coalesced(gathered[1:], xs),
        lambda: dist.all_gather_coalesced([own[1:] for own in gathered], xs),
        lambda: dist.all_gather_coalesced(gathered, [xs[0], xs[0]]),
    ):
        try:
            mistaken()
        except (RuntimeError, ValueError) as error:
            refused.append(f"{type(error).__name__}: {error}")
    return [x.numpy() for x in xs], [[x.numpy() for x in own] for own in gathered], refused


def _questions(torch: Any, dist: Any, rank: int, size: int) -> Any:
    asked = [dist.is_backend_available(name) for name in ("gloo", "xyz")]
    asked += [dist.supports_complex(op) for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX)]
    told = [str(dist.get_debug_level()), dist.get_backend_config(), dist.get_default_backend_for_device("cpu")]
    return [*asked, *told, str(dist.BackendConfig(dist.Backend("cpu:gloo,cuda:nccl"))), dist.get_pg_count() > 0]


CASES: dict[str, Case] = {
    "several": Case(
        _several,
        lambda rank, size: (
            [_all(size).sum(0), np.full(2, size * (size - 1) // 2)],
            [[np.full(2, k), _all(size)[k]] for k in range(size)],
            ["ValueError: Invalid usage of tensors with different dtypesFound torch.int64 and  torch.float32",
             "RuntimeError: ProcessGroupGloo::allgather_coalesced: output lists should be equal to world size",
             "RuntimeError: ProcessGroupGloo::allgather_coalesced: invalid output size: (expected length 2, got 1)",
             "RuntimeError: ProcessGroupGloo::allgather_coalesced: invalid size of output tensor at index 0 "
             "(expected length (3), got (2))"],
        ),
    ),
    "functional": Case(_functional, _functional_expected),
    "questions": Case(
        _questions,
        lambda rank, size: [True, False, True, False, "DebugLevel.OFF", "cpu:gloo,cuda:gloo", "gloo",
                            "cpu:gloo,cuda:nccl", True],
    ),
    **{f"all_reduce {name} {dtype}": _all_reduce(name, dtype) for name, dtypes in _REDUCED.items() for dtype in dtypes},
    "average": Case(_average, lambda rank, size: (np.full((2, 2), (size - 1) / 2, np.float32), True)),
    "bools": Case(_bools, lambda rank, size: np.array([True, False, True])),
    "slices": Case(
        _slices, lambda rank, size: np.outer([0, size * (size + 1) / 2, 0, 0], np.ones(3)).astype(np.float32)
    ),
    "signed zero": Case(
        _signed_zero, lambda rank, size: (np.array([-0.0, np.nan, -1.5], np.float32), np.array([True, False, True]))
    ),
    "dtypes": Case(
        _dtypes,
        lambda rank, size: (
            [[2.0, 2.0]] * 5 + [[1.0, 1.0], [2.0, 2.0]], (0, 3), size * (size - 1) / 2, 2**40 + 1
        ),
    ),
    "reduce": Case(_reduce, lambda rank, size: _all(size).sum(0) if rank == size - 1 else None),
    "all_gather": Case(_all_gather, lambda rank, size: (list(_all(size)), _all(size).reshape(-1))),
    "beyond gloo": Case(
        _beyond_gloo,
        lambda rank, size: (
            _all(size), np.outer(np.ones(3), [0, size * (size + 1) / 2, 0, 0]).astype(np.float32),
            [np.full(rank + 1, k, np.float32) for k in range(size)],
        ),
    ),
    "reduce_scatter": Case(
        _reduce_scatter,
        lambda rank, size: (
            np.full(2, 10 * rank * size + size * (size - 1) / 2, np.float32),
            np.float32(size * (np.arange(2.0) + 2 * rank) + size * (size - 1) / 2)[None],
        ),
    ),
    "gather, scatter": Case(
        _gather_scatter, lambda rank, size: (list(_all(size)) if rank == 1 else None, np.full(2, rank, np.float32))
    ),
    "all_to_all": Case(
        _all_to_all,
        lambda rank, size: (
            [np.full(2, 10 * rank + k, np.float32) for k in range(size)],
            np.repeat(np.arange(size, dtype=np.float32), rank + 1)[:, None] * np.ones((1, 2), np.float32),
            np.float32(rank + 10 * np.arange(size)),
        ),
    ),
    "ring": Case(
        _ring,
        lambda rank, size: (
            np.full(2, (rank - 1) % size, np.float32),
            [] if rank else [(k, _values(k).tolist()) for k in range(1, size)],
        ),
    ),
    "tags": Case(_tags, lambda rank, size: [8.0, 7.0] if rank == 1 else []),
    "from anybody": Case(_from_anybody, lambda rank, size: [] if rank else [(k, float(k)) for k in range(1, size)]),
    "objects": Case(
        _objects,
        lambda rank, size: (
            [{"rank": k} for k in range(size)], [1, "x"], [f"object {rank}"],
            [10 * k for k in range(size)] if rank == 1 else None,
        ),
    ),
    "groups": Case(
        _groups,
        lambda rank, size: (
            (size + 1.0, size - 1.0, (int(rank > 0), 2, [0, size - 1]), 1, size - 1)
            if rank in (0, size - 1) else (rank + 1.0, -1)
        ),
    ),
    "grid": Case(_grid, lambda rank, size: float(rank // 2 * 4 + 1)),
    "recorded": Case(_recorded, _recorded_expected),
}  # fmt: skip


def assert_same(got: Any, expected: Any) -> None:
    """What a program has returned is what it must have got."""
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype
    elif isinstance(expected, (list, tuple)):
        assert isinstance(got, (list, tuple)), got
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b)
    else:
        assert got == expected
