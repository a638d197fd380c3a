"""Where tensors are: `to`, factories, contexts, modules, optimizers, files, printing, and PyTorch's errors."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager import nn
from tests.devices.far import FarRuntime, far


@pytest.fixture(autouse=True)
def runtime() -> Iterator[FarRuntime]:
    with far() as found:
        yield found


def test_to():
    x = torch.arange(6.0).reshape(2, 3)
    y = x.to("xla:1")
    assert (str(y.device), y.is_cpu, y.is_xla, y.is_cuda, y.get_device()) == ("xla:1", False, True, False, 1)
    assert y.to("xla:1") is y
    assert y.to(device="xla:1", copy=True) is not y
    assert y.to("xla:2").device == torch.device("xla", 2)
    assert y.to("xla:1", torch.float64).dtype == torch.float64
    assert y.to(x).device.type == "cpu"
    assert x.to(y, non_blocking=True).device == y.device
    assert x.t().to("xla:1").stride() == (1, 3)
    assert x.cuda().device == torch.device("cuda:0")
    assert x.cuda(2).cpu().tolist() == x.tolist()
    assert y.to("meta").is_meta
    assert x.device.type == "cpu"
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        torch.empty(2, device="meta").to("xla:0")


@pytest.mark.parametrize(("name", "message"), [("cuda:9", "CUDA error: invalid device ordinal"),
                                               ("xla:9", "XLA error: invalid device ordinal")])  # fmt: skip
def test_an_index_that_does_not_exist(name: str, message: str):
    for make in (lambda: torch.zeros(2, device=name), lambda: torch.ones(2).to(name), lambda: nn.Linear(2, 2).to(name)):
        with pytest.raises(RuntimeError, match=message):
            make()


FACTORIES: list[Callable[[str], Any]] = [
    lambda d: torch.zeros(2, 3, device=d), lambda d: torch.ones((2,), device=d), lambda d: torch.empty(2, device=d),
    lambda d: torch.full((2,), 3, device=d), lambda d: torch.eye(3, device=d), lambda d: torch.arange(4, device=d),
    lambda d: torch.linspace(0, 1, 3, device=d), lambda d: torch.tensor([[1, 2]], device=d),
    lambda d: torch.as_tensor(np.ones(2), device=d), lambda d: torch.rand(2, device=d),
    lambda d: torch.randn(2, device=d), lambda d: torch.randint(3, (2,), device=d),
    lambda d: torch.randperm(4, device=d), lambda d: torch.empty_strided((2, 2), (1, 2), device=d),
    lambda d: torch.normal(0.0, 1.0, (2,), device=d), lambda d: torch.scalar_tensor(2.0, device=d),
    lambda d: torch.tril_indices(2, 2, device=d), lambda d: torch.hann_window(4, device=d),
    lambda d: torch.fft.fftfreq(4, device=d), lambda d: torch.logspace(0, 1, 3, device=d),
    lambda d: torch.asarray([1.0], device=d), lambda d: torch.zeros(2).new_ones(3, device=d),
    lambda d: torch.zeros_like(torch.ones(2, 2), device=d), lambda d: torch.rand_like(torch.ones(2), device=d),
    lambda d: nn.Parameter(torch.zeros(2, device=d)), lambda d: nn.Linear(2, 3, device=d).bias,
    lambda d: nn.LSTM(2, 3, device=d).weight_hh_l0, lambda d: nn.BatchNorm1d(2, device=d).running_mean,
]  # fmt: skip


@pytest.mark.parametrize("make", FACTORIES)
def test_factories(make: Callable[[str], Any]):
    made = make("xla:3")
    assert str(made.device) == "xla:3"
    with torch.device("xla:2"):
        assert str(torch.zeros(1).device) == "xla:2"
    for like in (torch.zeros_like, torch.rand_like, torch.empty_like, torch.Tensor.clone, torch.Tensor.detach):
        source = made.detach()
        source = source if source.is_floating_point() else source.float()
        assert str(like(source).device) == "xla:3"
    assert str(made.new_zeros(2).device) == str(made.new_tensor([1]).device) == "xla:3"


def test_contexts_and_the_default():
    with torch.device("xla:1"):
        layer = nn.Linear(2, 2)
        assert str(layer.weight.device) == str(torch.randn(2).device) == str(torch.tensor(1).device) == "xla:1"
    torch.set_default_device("xla:2")
    try:
        assert str(torch.ones(1).device) == "xla:2"
        assert torch.get_default_device() == torch.device("xla:2")
    finally:
        torch.set_default_device(None)
    assert torch.ones(1).is_cpu


def test_values_reach_python_where_it_asks(runtime: FarRuntime):
    x = torch.tensor([[1.5]], device="xla:1")
    assert (x.item(), float(x), int(x), bool(x), x.tolist(), f"{x[0, 0]:.2f}") == (1.5, 1.5, 1, True, [[1.5]], "1.50")
    assert runtime.fetched == 6
    with pytest.raises(TypeError, match="can't convert xla:1 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert xla:1 device type tensor to numpy"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [[1.5]]
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        torch.ones(2, device="xla:1").item()


def test_texts():
    x = torch.tensor([1.0, 2.0], device="xla:1", requires_grad=True)
    assert repr(x) == "tensor([1., 2.], device='xla:1', requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], device='xla:1', grad_fn=<MulBackward0>)"
    assert repr(torch.ones(1, dtype=torch.int32).cuda()) == "tensor([1], device='cuda:0', dtype=torch.int32)"
    assert repr(torch.zeros(0, 3, device="xla:0")) == "tensor([], device='xla:0', size=(0, 3))"
    assert repr(nn.Parameter(x.detach())).startswith("Parameter containing:\ntensor([1., 2.], device='xla:1'")


MIXED: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda x, y: x + y, "but found at least two devices, xla:1 and cpu!"),
    (lambda x, y: y * x, "but found at least two devices, xla:1 and cpu!"),
    (lambda x, y: torch.cat([x, y]), "but found at least two devices, xla:1 and cpu!"),
    (lambda x, y: torch.where(x > 0, x, y), "but found at least two devices, xla:1 and cpu!"),
    (lambda x, y: x @ y, "on the same device, but got"),
    (lambda x, y: nn.functional.linear(x, y), "on the same device"),
    (lambda x, y: x + y.to("xla:0"), "but found at least two devices, xla:1 and xla:0!"),
    (lambda x, y: nn.Linear(3, 2)(x), "on the same device"),
]


@pytest.mark.parametrize(("call", "message"), MIXED)
def test_mixed_devices(call: Callable[[Any, Any], Any], message: str):
    x, y = torch.ones(3, 3, device="xla:1"), torch.ones(3, 3)
    with pytest.raises(RuntimeError, match=message):
        call(x, y)


def test_what_may_be_on_the_cpu():
    x = torch.arange(6.0, device="xla:1").reshape(2, 3)
    assert (x + torch.tensor(1.0)).device == x.device
    assert (x * torch.tensor(2)).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert x[torch.tensor([1])].tolist() == [[3, 4, 5]]
    assert x[:, torch.tensor([True, False, True])].tolist() == [[0, 2], [3, 5]]
    x[torch.tensor([0]), torch.tensor([2])] = 9
    assert x[0, 2].item() == 9
    x.copy_(torch.zeros(2, 3))
    assert x.sum().item() == 0
    y = torch.ones(2, 3)
    y.copy_(x)
    assert y.is_cpu
    assert not y.any()


def test_modules_and_optimizers():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    losses = {}
    for where in ("cpu", "xla:1"):
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
        net.load_state_dict(model.state_dict())
        kept = net[0].weight
        assert net.to(where) is net
        assert net[0].weight is kept
        optimizer = torch.optim.AdamW(net.parameters(), 0.05)
        a, b = x.to(net[0].weight.device), y.to(where)
        losses[where] = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = ((net(a) - b) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses[where].append(loss.item())
        assert all(str(p.device) == where for p in [*net.parameters(), *net.buffers()])
        assert str(optimizer.state[net[0].weight]["exp_avg"].device) == where
        again = torch.optim.AdamW(net.parameters(), 0.05)
        again.load_state_dict(optimizer.state_dict())
        assert str(again.state[net[0].weight]["exp_avg"].device) == where
    np.testing.assert_allclose(losses["cpu"], losses["xla:1"], rtol=1e-5)


def test_lazy_layers():
    for layer in (nn.LazyLinear(2, device="xla:1"), nn.LazyLinear(2).to("xla:1")):
        assert str(layer.weight.device) == "xla:1"
        assert str(layer(torch.ones(3, 4, device="xla:1")).device) == "xla:1"
        assert str(layer.weight.device) == "xla:1"


OPTIMIZERS = ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD",
              "LBFGS"]  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str):
    results = []
    for where in ("cpu", "xla:2"):
        p = torch.tensor([1.0, -2.0, 3.0]).to(where).requires_grad_()
        optimizer = getattr(torch.optim, name)([p], lr=0.1)

        def closure(p: Any = p, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (p**2 + p).sum()
            loss.backward()
            return loss

        for _ in range(5):
            optimizer.step(closure)
        results.append(p.tolist())
        assert str(p.device) == where
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_files():
    base = torch.arange(6.0, device="xla:1").reshape(2, 3)
    state = {"x": base, "row": base[1], "t": base.t(), "p": nn.Parameter(torch.ones(2, device="xla:2")), "n": 3}
    file = io.BytesIO()
    torch.save(state, file)

    def loaded(where: Any = None) -> Any:
        file.seek(0)
        return torch.load(file, map_location=where)

    found = loaded()
    assert [str(found[k].device) for k in ("x", "row", "t", "p")] == ["xla:1", "xla:1", "xla:1", "xla:2"]
    assert found["p"].requires_grad
    assert found["t"].tolist() == base.t().tolist()
    assert found["row"].tolist() == [3, 4, 5]
    here = loaded("cpu")
    assert all(here[k].is_cpu for k in ("x", "row", "p"))
    here["row"].zero_()
    assert here["x"][1].tolist() == [0, 0, 0]  # memory is shared as it was
    assert str(loaded("xla:3")["x"].device) == "xla:3"
    assert str(loaded({"xla:1": "xla:0"})["x"].device) == "xla:0"
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        loaded("xla:9")
    layer = nn.Linear(2, 2)
    layer.load_state_dict({"weight": torch.ones(2, 2, device="xla:1"), "bias": torch.zeros(2, device="xla:1")})
    assert layer.weight.is_cpu
    assert layer.weight.tolist() == [[1, 1], [1, 1]]


def test_random_numbers():
    def drawn() -> list[Any]:
        return [torch.rand(3, device="xla:1").tolist(), torch.nn.functional.dropout(x, 0.5).tolist(),
                torch.randint(10, (4,), device="xla:1").tolist(), torch.randn(2, device="xla:2").tolist()]  # fmt: skip

    x = torch.ones(8, device="xla:1")
    torch.manual_seed(5)
    first = drawn()
    torch.manual_seed(5)
    here = torch.rand(3)
    assert drawn() == first  # of streams of their own
    assert first[0] != here.tolist()
    generator = torch.Generator(device="xla:1").manual_seed(5)
    assert generator.device == torch.device("xla:1")
    assert torch.rand(3, device="xla:1", generator=generator).tolist() == first[0]
    state = generator.get_state()
    assert (state.dtype, state.shape) == (torch.uint8, (16,))
    after = torch.rand(2, device="xla:1", generator=generator)
    assert torch.rand(2, device="xla:1", generator=generator.set_state(state)).tolist() == after.tolist()
    with pytest.raises(RuntimeError, match="Expected a 'xla' device type for generator but found 'cpu'"):
        torch.rand(2, device="xla:1", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'xla'"):
        torch.rand(2, generator=generator)
    torch.cuda.manual_seed_all(1)
    once = torch.rand(2, device="cuda").tolist()
    torch.cuda.manual_seed_all(1)
    assert torch.rand(2, device="cuda").tolist() == once
    many = torch.randn(20000, device="xla:1").cpu()
    assert abs(float(many.mean())) < 0.03
    assert abs(float(many.std()) - 1) < 0.03


def test_pinned_memory():
    x = torch.ones(2)
    assert not x.is_pinned()
    assert x.pin_memory().is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.cuda().pin_memory()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), 2, pin_memory=True)
    assert all(batch.is_pinned() for (batch,) in loader)
    assert torch.zeros(2, pin_memory=True).is_pinned()


def test_cuda_names():
    cuda = torch.cuda
    assert (cuda.is_available(), cuda.device_count(), cuda.current_device()) == (True, 4, 0)
    with cuda.device(2):
        assert (cuda.current_device(), str(torch.ones(1, device="cuda").device)) == (2, "cuda:2")
    cuda.set_device(1)
    try:
        assert str(torch.ones(1).cuda().device) == "cuda:1"
    finally:
        cuda.set_device(0)
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    x = torch.ones(3, device="cuda") * 2
    end.record()
    cuda.synchronize()
    assert start.elapsed_time(end) >= 0
    assert end.query()
    with cuda.stream(cuda.Stream()):
        assert x.sum().item() == 6
    cuda.empty_cache()
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.device_count() == 4
    torch.accelerator.synchronize()
    assert torch.device(1) == torch.device("cuda:1")
