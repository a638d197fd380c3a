"""A world of one process, stores, and where processes meet: all within this process."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from eager import distributed as dist
from eager import multiprocessing as mp
from eager import nn
from eager.nn.parallel.reducer import buckets
from eager.processes import rendezvous
from graphc.errors import CaptureError
from graphc.ops import OPS, Trait
from tests.distributed.spawned import fail
from tests.oracle import torch_or_skip

SHORT = datetime.timedelta(seconds=0.05)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_before_and_after():
    assert not dist.is_initialized()
    assert dist.group.WORLD is None
    for ask in (
        dist.get_rank,
        dist.get_world_size,
        dist.barrier,
        dist.new_group,
        lambda: dist.all_reduce(torch.ones(1)),
    ):
        with pytest.raises(
            ValueError, match="Default process group has not been initialized, please make sure to call"
        ):
            ask()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "using env:// rendezvous: environment variable RANK expected, but not set"),
        ({"init_method": "tcp://host:1"}, ValueError, "using tcp:// rendezvous: rank parameter missing"),
        ({"init_method": "foo://host:1"}, RuntimeError, "No rendezvous handler for foo://"),
        ({"timeout": 3}, TypeError, "Expected timeout argument to be of type datetime.timedelta, got 3"),
        ({"backend": "nope"}, AssertionError, "Unknown backend type nope"),
        ({"store": 1, "init_method": "env://"}, AssertionError, "Cannot specify both init_method and store"),
    ],
)
def test_what_init_process_group_refuses(arguments: Any, error: Any, message: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(error, match=message):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("d.all_reduce([1])", TypeError, "Expected parameter `tensor` of type torch.Tensor"),
        ("d.all_reduce(t.ones(2), op=d.ReduceOp.BAND)", RuntimeError, "with non-integral dtype"),
        ("d.all_reduce(t.ones(2, dtype=t.complex64), op=d.ReduceOp.MAX)", ValueError,
         "all_reduce does not support RedOpType.MAX on complex tensors"),
        ("d.all_gather([], t.ones(2))", RuntimeError, "invalid output tensor list at index 0 "),
        ("d.all_gather([t.ones(3)], t.ones(2))", RuntimeError, "invalid tensor size at index 0"),
        ("d.all_gather([t.ones(2, dtype=t.int64)], t.ones(2))", ValueError, "with different dtypesFound torch"),
        ("d.all_gather(t.ones(2), t.ones(2))", TypeError, "Expected parameter `tensor_list` of type List"),
        ("d.reduce_scatter(t.ones(2), [])", RuntimeError, "invalid input tensor list size, must be world size"),
        ("d.gather(t.ones(2), None, dst=0)", ValueError, "``gather_list`` must be specified on destination rank"),
        ("d.scatter(t.ones(2), None, src=0)", ValueError, "``scatter_list`` must be specified on source rank"),
        ("d.broadcast(t.ones(2))", ValueError, "Must specify global_rank or group_rank"),
        ("d.send(t.ones(2), 0)", ValueError, "destination rank should not be the same as the rank of the current"),
        ("d.P2POp(d.all_reduce, t.ones(1), 0)", ValueError, "Invalid ``op``"),
        ("d.init_process_group('gloo')", ValueError, "trying to initialize the default process group twice!"),
    ],
)  # fmt: skip
def test_errors(call: str, error: Any, message: str, world: None):
    with pytest.raises(error, match=message):
        eval(call, {"d": dist, "t": torch})
    theirs = torch_or_skip()
    theirs.distributed.init_process_group("gloo", store=theirs.distributed.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(error, match=message):
            eval(call, {"d": theirs.distributed, "t": theirs})
    finally:
        theirs.distributed.destroy_process_group()


def test_a_world_of_one(world: None):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = dist.nn.functional.all_reduce(x * x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    found: list[Any] = [None]
    dist.all_gather_object(found, "x")
    work = dist.all_reduce(torch.ones(2), async_op=True)
    assert (found, work.wait(), dist.get_backend(), dist.get_rank(), dist.get_world_size()) == (
        ["x"],
        True,
        "gloo",
        0,
        1,
    )
    assert dist.group.WORLD.size() == 1
    with pytest.raises(CaptureError, match=r"isend\(\) cannot be part of a compiled program"):
        graphc.compile(lambda x: dist.isend(x, 0))(torch.ones(2))


def test_compare_holds_collectives(world: None):
    def f(x: Any) -> Any:
        y = x * 2
        dist.all_reduce(y)
        return (dist.nn.functional.all_reduce(x).square() + y).sum()

    report = compare.check(f, torch.ones(3))
    assert report.ok, report


def test_passes_keep_collectives():
    ranks = (0, 1)
    every = [op for op in OPS.values() if op.traits & Trait.COMMUNICATES]
    assert {op.name for op in every} >= {"all_reduce", "all_gather", "all_to_all", "broadcast", "reduce_scatter"}
    assert all(op.impure for op in every)
    from eager.engine.language import E

    def twice(x: Any) -> Any:
        unread = E.all_reduce(x, ranks=ranks, reduction="sum")
        same = E.all_reduce(x, ranks=ranks, reduction="sum")
        return x + 0 * unread.detach() * 0 + 0 * same.detach().sum() * 0 + x

    graph = graphc.optimize(graphc.trace(twice, torch.ones(2)))
    assert sum(node.op.name == "all_reduce" for node in graph.nodes.values()) == 2


@pytest.mark.parametrize("kind", ["HashStore", "FileStore", "TCPStore", "PrefixStore"])
def test_stores(kind: str, tmp_path: Path):
    store: Any = {
        "HashStore": dist.HashStore, "FileStore": lambda: dist.FileStore(str(tmp_path / "store"), 1),
        "TCPStore": lambda: dist.TCPStore("127.0.0.1", 0, 1, True),
        "PrefixStore": lambda: dist.PrefixStore("p", dist.HashStore()),
    }[kind]()  # fmt: skip
    store.set_timeout(SHORT)
    store.set("a", "é")
    assert (store.get("a"), store.add("n", 3), store.add("n", 2), store.get("n")) == ("é".encode(), 3, 5, b"5")
    with pytest.raises(dist.DistStoreError, match=r"(?i)wait timeout"):
        store.get("b")
    assert (store.check(["a", "n"]), store.check(["a", "b"])) == (True, False)
    assert (store.delete_key("a"), store.delete_key("a")) == (True, False)
    assert [store.compare_set("q", *pair) for pair in (("", "x"), ("x", "y"), ("x", "z"))] == [b"x", b"y", b"y"]
    assert store.compare_set("new", "old", "z") == b"old"
    store.append("q", b"\xff")
    assert store.multi_get(["q"]) == [b"y\xff"]
    with pytest.raises(ValueError, match=r"invalid literal|stoll"):
        store.add("q", 1)
    threads = [threading.Thread(target=lambda: store.add("sum", 1)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("sum") == b"8"


def test_two_clients_of_one_store():
    master = dist.TCPStore("127.0.0.1", 0, is_master=True)
    client = dist.TCPStore("127.0.0.1", master.port)
    threading.Timer(0.05, lambda: master.set("late", "1")).start()
    assert client.get("late") == b"1"
    with pytest.raises(dist.DistNetworkError, match="failed to connect"):
        dist.TCPStore("127.0.0.1", rendezvous.free_port(), timeout=SHORT)


def test_buckets_go_from_the_last_parameter_to_the_first():
    made = [torch.zeros(100), torch.zeros(100), torch.zeros(100, dtype=torch.float64), torch.zeros(100)]
    assert buckets(made, 25) == [[3, 1, 0], [2]]
    assert buckets(made, 0.0001) == [[3], [2], [1], [0]]


def test_conversion_keeps_parameters(world: None):
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm2d(2, affine=False)))
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert [type(m).__name__ for m in (converted[0], converted[1][0])] == ["SyncBatchNorm"] * 2
    assert converted[0].weight is model[0].weight
    x = torch.randn(4, 3)
    np.testing.assert_array_equal(converted[0](x).detach().numpy(), nn.BatchNorm1d(3)(x).detach().numpy())
    with pytest.raises(ValueError, match="expected at least 2D input"):
        converted[0](torch.ones(3))


def test_spawn():
    mp.spawn(fail, ("no",), nprocs=1)
    with pytest.raises(mp.ProcessRaisedException, match=r"Process 1 terminated(.|\n)*KeyError"):
        mp.spawn(fail, ("raise",), nprocs=2)
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with exit code 4") as caught:
        mp.spawn(fail, ("exit",), nprocs=2)
    assert (caught.value.exit_code, caught.value.error_index) == (4, 1)
