"""`torch.profiler` and `torch.autograd.profiler`: what is recorded; tables as PyTorch lays them out; nothing stays."""

from __future__ import annotations

import gzip
import json

import pytest

import eager as torch
import graphc
from eager.core.interpreter import IMMEDIATE
from eager.core.later import Later
from eager.engine.language import E, TensorLanguage
from eager.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from eager.profiling import events
from tests.oracle import asked_of_torch, torch_or_skip


def places():
    """All that a profile may swap, as it is now."""
    optimizer = torch.optim.Optimizer
    return (
        dict(vars(torch.Tensor)), dict(vars(torch.nn.functional)), dict(vars(E)), type(E), dict(vars(IMMEDIATE)),
        optimizer.step, torch.nn.Module.__call__, graphc.compile(places).__class__.__call__,
        {name: value for name, value in vars(torch).items() if callable(value)},
    )  # fmt: skip


def names(prof):
    return [event.name for event in prof.events()]


def test_ops_functions_methods_and_nodes_are_events():
    x = torch.ones(2, 3, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
        with record_function("block"):
            y = torch.nn.functional.linear(x, torch.ones(4, 3)).relu()
        y = y * 1
        y += 1
        (y * 2)[0].sum().backward()
    found = {event.name: event for event in prof.events()}
    assert found["aten::relu"].cpu_parent is found["aten::linear"].cpu_parent is found["block"]
    assert found["block"].is_user_annotation
    assert {"aten::add_", "aten::mul", "aten::getitem", "aten::sum", "SumBackward0", "ReluBackward0"} <= found.keys()
    assert found["aten::linear"].input_shapes == [[2, 3], [4, 3]]
    assert found["aten::mul"].cpu_memory_usage == 2 * 4 * 4
    assert "aten::size" not in found
    block = found["block"]
    assert block.cpu_time_total >= sum(child.cpu_time_total for child in block.cpu_children) >= 0
    assert prof.events().self_cpu_time_total == pytest.approx(
        sum(event.cpu_time_total for event in prof.events() if event.cpu_parent is None)
    )


def test_nothing_stays_swapped():
    torch.ones(2).relu()
    for name, value in list(vars(torch.Tensor).items()):
        if isinstance(value, Later):
            hasattr(torch.Tensor, name)
    before = places()
    with pytest.raises(ZeroDivisionError), profile(with_modules=True):
        torch.nn.Linear(2, 2)(torch.ones(1, 2)).erfc()
        torch.special.erfcx(torch.ones(1))
        1 / 0  # noqa: B018
    after = places()
    for old, new in zip(before, after, strict=True):
        if isinstance(old, dict):
            assert {name: new[name] for name in old} == old
            assert not [name for name, value in new.items() if hasattr(value, "_timed")]
        else:
            assert new == old
    assert type(E) is TensorLanguage


def test_modules_optimizers_and_stacks():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(with_modules=True, with_stack=True) as prof:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert {"nn.Module: Sequential", "nn.Module: Linear", "Optimizer.step#SGD.step"} <= {*names(prof)}
    linear = next(event for event in prof.events() if event.name == "nn.Module: Linear")
    assert linear.cpu_parent.name == "nn.Module: Sequential"
    assert any("test_modules_optimizers_and_stacks" in entry for entry in linear.stack)
    assert "test_profiler.py(" in prof.key_averages(group_by_stack_n=2).table()


@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_compiled_programs_show_guards_executable_and_results(backend):
    f = graphc.compile(lambda x: (x * x).sum(), backend=backend)
    x = torch.ones(3, requires_grad=True)
    with profile() as first:
        f(x)
    assert "graphc::trace and compile" in names(first)
    assert "aten::mul" not in names(first)
    with profile() as prof:
        f(x).backward()
    found = {event.name: event for event in prof.events()}
    call = found["graphc::compiled <lambda>"]
    assert call.cpu_children[0].name == "graphc::guards"
    executable = next(event for name, event in found.items() if name.startswith("graphc::executable"))
    assert "nodes" in executable.name
    assert {"graphc::results", "CompiledBackward"} <= found.keys()
    f(x)
    assert not hasattr(f._last().runner.forward.dispatch, "__wrapped__")


def test_a_compiled_training_step_is_one_program():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @graphc.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    x = torch.ones(1, 2)
    losses = [step(x).item() for _ in range(3)]
    with profile() as prof:
        losses.append(step(x).item())
    losses.append(step(x).item())
    assert sum(name.startswith("graphc::executable") for name in names(prof)) == 1
    assert losses == sorted(losses, reverse=True)


def test_schedules_and_handlers(tmp_path):
    ready = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: ready.append((p.step_num, names(p).count("aten::relu"))),
    ) as prof:
        for _ in range(10):
            torch.ones(1).relu()
            prof.step()
    assert ready == [(3, 2), (7, 2)]
    for gz in (False, True):
        handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / str(gz)), "worker", use_gzip=gz)
        with profile(on_trace_ready=handler):
            torch.ones(1).relu()
        (file,) = (tmp_path / str(gz)).iterdir()
        assert file.name.startswith("worker.")
        text = gzip.decompress(file.read_bytes()).decode() if gz else file.read_text()
        spans = [e for e in json.loads(text)["traceEvents"] if e["ph"] == "X"]
        assert [span["name"] for span in spans] == ["aten::ones", "aten::relu"]


@asked_of_torch("arguments", [{"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 1},
                              {"wait": 0, "warmup": 0, "active": 1}, {"wait": 2, "warmup": 1, "active": 3},
                              {"wait": 2, "warmup": 1, "active": 1, "skip_first": 3, "skip_first_wait": 1},
                              {"wait": 1, "warmup": 1, "active": 0}])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_schedules_are_pytorchs(arguments):
    def told(profiler):
        try:
            action = profiler.schedule(**arguments)
            return [action(i).name for i in range(14)]
        except AssertionError as error:
            return str(error)

    torch_or_skip()
    import torch.profiler as theirs

    assert told(torch.profiler) == told(theirs)
    assert all(theirs.ProfilerAction[action.name].value == action.value for action in ProfilerAction)


@asked_of_torch(
    "options",
    [{}, {"sort_by": "cpu_time_total", "row_limit": 2}, {"header": "Title"}, {"top_level_events_only": True},
     {"max_name_column_width": 12}, {"time_unit": "ms"}],
)  # fmt: skip
@pytest.mark.parametrize("memory", [False, True])
def test_tables_are_pytorchs(options, memory):
    from torch.autograd.profiler_util import EventList as Theirs
    from torch.autograd.profiler_util import FunctionEventAvg as TheirSum

    rows = [("aten::add", 3, 1.5, 4.25, 2048, 0), ("a_rather_long_name_of_an_event", 1, 2e6, 3e6, 0, -10),
            ("aten::mm", 2, 250.0, 1234.5, 3 * 2**20, 2**30)]  # fmt: skip

    def filled(sum_of, total_field):
        made = []
        for key, count, own, total, memory_total, memory_own in rows:
            each = sum_of()
            each.key, each.count, each.cpu_parent = key, count, None if key == "aten::mm" else each
            each.input_shapes, each.stack, each.is_user_annotation = "", [], False
            setattr(each, total_field, total)
            each.self_cpu_time_total = own
            each.cpu_memory_usage, each.self_cpu_memory_usage = memory_total, memory_own
            if sum_of is TheirSum:
                each.overload_name, each.node_id, each.device_type = "", -1, None
                each.device_time_total = each.self_device_time_total = 0
                each.is_async = each.is_remote = each.is_legacy = False
                each.flops = each.self_device_memory_usage = each.device_memory_usage = 0
                each.use_device = None
            made.append(each)
        return made

    ours = events.EventList(filled(events.FunctionEventAvg, "cpu_time_total"), profile_memory=memory)
    theirs = Theirs(filled(TheirSum, "cpu_time_total"), profile_memory=memory)
    assert ours.table(**options) == theirs.table(**options)


@pytest.mark.parametrize(("us", "text"), [(0, "0.000us"), (999.9994, "999.999us"), (1e3, "1.000ms"), (2.5e6, "2.500s")])
def test_times(us, text):
    assert events.shown_time(us) == text


def test_the_older_profiler():
    with torch.autograd.profiler.profile() as prof:
        torch.ones(2).relu()
    assert prof.key_averages()[1].key == "aten::relu"
    assert prof.total_average().count == len(prof.function_events) == 2
    assert "aten::relu" in str(prof)
    with torch.autograd.profiler.profile(enabled=False) as nothing:
        assert nothing is None
    with profile(), pytest.raises(RuntimeError, match="already enabled"), profile():
        pass


def test_record_function_decorates_and_costs_nothing_alone():
    @record_function("named")
    def f(x):
        return x + 1

    assert f(1) == 2
    with profile() as prof:
        f(torch.ones(1))
    assert names(prof)[1:] == ["named", "aten::add"]
