"""Names that libraries such as transformers ask for."""

from __future__ import annotations

import gc
import math
import sys
import warnings
from typing import Any

import pytest

import eager
import graphc
from eager.nn.attention import flex_attention as flex


def attended(torch: Any, module: Any) -> Any:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 5, 4), torch.randn(2, 2, 7, 4), torch.randn(2, 2, 7, 3)
    bias, documents = torch.randn(4, 7), torch.tensor([0, 0, 1, 1, 1, 2, 2])

    def same(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (documents[i] == documents[j]) & (i > 0)

    mask = module.create_block_mask(same, None, None, 5, 7, device="cpu", BLOCK_SIZE=2)
    return q, k, v, lambda s, b, h, i, j: s + bias[h][j] * (i - j), mask


@pytest.mark.on_numpy
def test_flex_attention_is_softmax_of_the_scores() -> None:
    q, k, v, score, mask = attended(eager, flex)
    found, lse = flex.flex_attention(q, k, v, score, mask, enable_gqa=True, return_lse=True)
    rows = [eager.stack([score(0.0, 0, h, i, eager.arange(7)) for i in range(5)]) for h in range(4)]
    scores = q @ k.repeat_interleave(2, 1).mT / 2 + eager.stack(rows)
    allowed = flex.create_mask(mask.mask_mod, 1, 1, 5, 7)
    scores = eager.where(allowed, scores, -math.inf)
    expected = eager.nan_to_num(scores.softmax(-1)) @ v.repeat_interleave(2, 1)
    eager.testing.assert_close(found, expected)
    eager.testing.assert_close(lse, scores.logsumexp(-1))
    assert found[:, :, 0].abs().max() == 0 and lse[0, 0, 0] == -math.inf
    compiled = graphc.compile(lambda q: flex.flex_attention(q, k, v, score, mask, enable_gqa=True))
    eager.testing.assert_close(compiled(q), found)


def test_flex_attention_is_pytorch_s() -> None:
    torch = pytest.importorskip("torch")
    from torch.nn.attention import flex_attention as theirs

    q, k, v, score, mask = attended(torch, theirs)
    ours_q, ours_k, ours_v, our_score, our_mask = attended(eager, flex)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not compiled
        expected = theirs.flex_attention(q, k, v, score, mask, enable_gqa=True)
    found = flex.flex_attention(ours_q, ours_k, ours_v, our_score, our_mask, enable_gqa=True)
    assert found.numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    scores = theirs.create_mask(mask.mask_mod, 1, 1, 5, 7, device="cpu")
    assert flex.create_mask(our_mask.mask_mod, 1, 1, 5, 7).tolist() == scores.tolist()
    for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"):
        assert getattr(our_mask, name).tolist() == getattr(mask, name).tolist(), name
    assert (our_mask.to_dense().tolist(), our_mask.sparsity()) == (mask.to_dense().tolist(), mask.sparsity())
    for refuse in (lambda m, q, k: m.flex_attention(q, k, k), lambda m, q, k: m.flex_attention(q[0], k, k)):
        messages: list[str] = []
        for module, x, y in ((flex, ours_q, ours_k), (theirs, q, k)):
            with pytest.raises((ValueError, NotImplementedError)) as caught:
                refuse(module, x, y)
            messages.append(f"{caught.type.__name__}: {caught.value}")
        assert messages[0] == messages[1]


def test_dtypes_without_tensors_have_limits() -> None:
    for name, largest in {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float8_e4m3fnuz": 240.0}.items():
        dtype = getattr(eager, name)
        assert (eager.finfo(dtype).max, dtype.itemsize, repr(dtype)) == (largest, 1, f"torch.{name}")
        with pytest.raises(NotImplementedError, match=f"tensors of torch.{name} are not supported"):
            eager.zeros(2, dtype=dtype)


def test_what_needs_cuda_is_named_and_refused() -> None:
    for name, message in {"CUDAGraph": "dummy base class CUDAGraph", "Stream": "Stream requires CUDA"}.items():
        with pytest.raises(RuntimeError, match=message):
            getattr(eager.cuda, name)()
    with eager.cuda.stream(None):
        assert isinstance(1, eager.cuda.Event) is False


def test_a_graph_of_calls_is_walked_up_to_its_root() -> None:
    node = next(iter(eager.fx.symbolic_trace(lambda x: eager.relu(x) + 1).graph.nodes))
    seen = []
    while node.op != "root":
        seen.append(node.op)
        node = node.next
    assert seen == ["placeholder", "call_function", "call_function", "output"]


def test_numbers_of_a_tensor_alone_are_printed() -> None:
    from eager._tensor_str import PRINT_OPTS, _tensor_str

    assert _tensor_str(eager.ones(2, 2), 4) == "[[1., 1.],\n     [1., 1.]]" and PRINT_OPTS.linewidth == 80


def test_parameters_without_a_shape_are_passed_over_by_what_initializes_all() -> None:
    layer = eager.nn.LazyLinear(2)
    for parameter in layer.parameters():
        parameter.data.fill_(1.0)
    assert layer.weight.data.shape == (0,) and not layer.weight.data.requires_grad
    layer(eager.ones(1, 3))
    assert layer.weight.shape == (2, 3)


def test_dicts_of_tensors_by_identity_keep_none_alive() -> None:
    from eager.utils.weak import TensorWeakRef, WeakIdKeyDictionary

    first, second = eager.ones(2), eager.ones(2)
    known = WeakIdKeyDictionary({first: 1, second: 2})
    reference = TensorWeakRef(first)
    assert (known[first], known[second], eager.ones(2) in known, reference() is first) == (1, 2, False, True)
    assert known.pop(second) == 2 and [*known.items()] == [(first, 1)]
    del first
    gc.collect()
    assert len(known) == 0 and reference() is None


def test_modules_of_the_compiled_library_can_be_imported() -> None:
    with graphc.torch_names():
        from torch._C._functorch import is_batchedtensor

        assert is_batchedtensor(eager.ones(1)) is False


@pytest.mark.filterwarnings("ignore:We've integrated functorch")
def test_functorch_is_what_became_of_it() -> None:
    with graphc.torch_names():
        import functorch

        with pytest.warns(FutureWarning, match=r"use `torch.func.grad` instead"):
            assert functorch.grad(eager.sin)(eager.zeros(())) == 1
        model = eager.nn.Sequential(eager.nn.Linear(2, 3), eager.nn.BatchNorm1d(3)).eval()
        function, params, buffers = functorch.make_functional_with_buffers(model)
        x = eager.randn(4, 2)
        function(params, buffers, x).square().sum().backward()
        model(x).square().sum().backward()
        assert all(eager.equal(a.grad, b.grad) for a, b in zip(params, model.parameters(), strict=True))
        both = [eager.nn.Linear(2, 1) for _ in range(2)]
        function, params, buffers = functorch.combine_state_for_ensemble(both)
        out = functorch.vmap(function, in_dims=(0, 0, None))(params, buffers, x)
        assert eager.allclose(out, eager.stack([each(x) for each in both]))
    assert "eager" not in getattr(sys.modules.get("functorch"), "__name__", "")
