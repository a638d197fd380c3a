"""Switches and devices that programs ask for: backends, attention kernels, accelerators that are not there."""

from __future__ import annotations

import pytest

import eager as torch
from eager import nn
from eager.nn.attention import SDPBackend, sdpa_kernel
from tests.oracle import asked_of_torch, torch_or_skip


def test_switches_are_set_and_put_back():
    for module, name in (("cudnn", "enabled"), ("mkldnn", "enabled"), ("opt_einsum", "enabled")):
        place = getattr(torch.backends, module)
        before = getattr(place, name)
        with pytest.raises(ZeroDivisionError), place.flags(**{name: not before}):
            assert getattr(place, name) is not before
            1 / 0  # noqa: B018
        assert getattr(place, name) is before
    cuda = torch.backends.cuda
    with cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled()
        assert cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()


def test_kernels_of_attention():
    q = torch.ones(1, 1, 2, 2)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        assert torch.equal(nn.functional.scaled_dot_product_attention(q, q, q), q)
    with pytest.raises(AssertionError, match="SDPBackend or a list"), sdpa_kernel("math"):
        pass


QUERIES = (
    "torch.mps.is_available()", "torch.mps.device_count()", "torch.xpu.is_available()", "torch.xpu.device_count()",
    "torch.cpu.is_available()", "torch.cpu.device_count()", "torch.cpu.current_device()", "torch.xpu.set_device(0)",
    "torch.cuda.Stream()", "torch.cuda.Event()",
    "issubclass(torch.cuda.OutOfMemoryError, RuntimeError)", "torch.backends.mps.is_built()",
    "torch.OutOfMemoryError is torch.cuda.OutOfMemoryError", "torch.backends.opt_einsum.enabled.__class__",
    "[k.name for k in torch.nn.attention.SDPBackend.__members__.values()]", "torch._assert(False, 'why')",
    "torch.nn.modules.utils._pair(3)", "torch.nn.modules.utils._triple((1, 2))",
    "torch.nn.modules.conv._ConvNd.__name__",
    "isinstance(torch.nn.BatchNorm2d(2), torch.nn.modules.batchnorm._BatchNorm)",
    "torch.nn.modules.linear.Linear(1, 2)",
)  # fmt: skip


@asked_of_torch("query", QUERIES)
def test_queries_as_in_pytorch_for_the_cpu(query):

    def told(torch):
        try:
            return str(eval(query, {"torch": torch}))
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    assert told(__import__("eager")) == told(torch_or_skip())


def test_nothing_is_downloaded():
    with pytest.raises(NotImplementedError, match="never does"):
        torch.utils.model_zoo.load_url("https://example.org/weights.pt")


def test_a_prefix_is_taken_off_a_state_dict():
    state = nn.Sequential(nn.Linear(2, 2)).state_dict(prefix="module.")
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"]
    assert nn.Sequential(nn.Linear(2, 2)).load_state_dict(state).missing_keys == []
