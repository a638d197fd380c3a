"""Values, dtypes and gradients of the function surface, case by case against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import eager
import eager.nn.functional

torch = pytest.importorskip("torch")

# name -> (shapes of the float operands, function of the module and the operands)
CASES = {
    # arithmetic
    "add_alpha": (((3, 4), (4,)), lambda t, x, y: t.add(x, y, alpha=0.5)),
    "sub_alpha": (((3, 4), (3, 1)), lambda t, x, y: x.sub(y, alpha=2)),
    "rsub": (((3,),), lambda t, x: t.rsub(x, 2.0)),
    "div_trunc": (((3, 4), (4,)), lambda t, x, y: t.div(x, y, rounding_mode="trunc")),
    "div_floor": (((3, 4), (4,)), lambda t, x, y: t.div(x, y, rounding_mode="floor")),
    "square_operator": (((3, 4),), lambda t, x: x**2),
    "cube_operator": (((3, 4),), lambda t, x: x**3),
    "reflected_power": (((3, 4),), lambda t, x: 2.0**x),
    "float_power": (((3, 4),), lambda t, x: t.float_power(x, 2)),
    "clamp": (((3, 4),), lambda t, x: t.clamp(x, -0.5, 0.5)),
    "clamp_min": (((3, 4),), lambda t, x: x.clamp(min=0.1)),
    "clamp_tensors": (((3, 4), (4,), (4,)), lambda t, x, a, b: t.clamp(x, a, b)),
    "addcmul": (((3, 4), (3, 4), (4,)), lambda t, x, y, z: t.addcmul(x, y, z, value=0.3)),
    "addcdiv": (((3, 4), (3, 4), (4,)), lambda t, x, y, z: t.addcdiv(x, y, z, value=0.3)),
    "lerp": (((3, 4), (3, 4)), lambda t, x, y: t.lerp(x, y, 0.3)),
    "lerp_far": (((3, 4), (3, 4)), lambda t, x, y: x.lerp(y, 0.8)),
    "lerp_tensor": (((3, 4), (3, 4), (4,)), lambda t, x, y, w: t.lerp(x, y, w)),
    # reductions
    "sum": (((3, 4),), lambda t, x: x.sum()),
    "sum_dim": (((2, 3, 4),), lambda t, x: t.sum(x, dim=(0, -1))),
    "sum_axis_keepdim": (((2, 3),), lambda t, x: x.sum(axis=1, keepdim=True)),
    "sum_dtype": (((2, 3),), lambda t, x: x.sum(dtype=t.float64)),
    "mean": (((3, 4),), lambda t, x: x.mean()),
    "mean_dim": (((3, 4),), lambda t, x: t.mean(x, 1)),
    "prod": (((3, 4),), lambda t, x: x.prod()),
    "prod_dim": (((3, 4),), lambda t, x: t.prod(x, 1, keepdim=True)),
    "amax": (((3, 4),), lambda t, x: x.amax((0, 1))),
    "amin": (((3, 4),), lambda t, x: t.amin(x, dim=1, keepdim=True)),
    "max_all": (((3, 4),), lambda t, x: x.max()),
    "max_dim": (((3, 4),), lambda t, x: x.max(dim=1).values),
    "max_dim_keep": (((3, 4),), lambda t, x: t.max(x, 0, keepdim=True)[0]),
    "max_pair": (((3, 4), (3, 4)), lambda t, x, y: t.max(x, y)),
    "min_dim": (((3, 4),), lambda t, x: x.min(-1)[0]),
    "var": (((3, 4),), lambda t, x: x.var()),
    "var_dim": (((3, 4),), lambda t, x: t.var(x, 1, correction=0)),
    "var_biased": (((3, 4),), lambda t, x: t.var(x, unbiased=False)),
    "std": (((3, 4),), lambda t, x: x.std(0, keepdim=True)),
    "std_mean": (((3, 4),), lambda t, x: sum(t.std_mean(x, 1))),
    "norm": (((3, 4),), lambda t, x: x.norm()),
    "norm_1": (((3, 4),), lambda t, x: t.norm(x, 1, dim=1)),
    "norm_3": (((3, 4),), lambda t, x: x.norm(p=3, dim=0, keepdim=True)),
    "norm_inf": (((3, 4),), lambda t, x: x.norm(float("inf"))),
    "logsumexp": (((3, 4),), lambda t, x: t.logsumexp(x, 1)),
    "softmax": (((3, 4),), lambda t, x: x.softmax(-1)),
    "log_softmax": (((3, 4),), lambda t, x: t.log_softmax(x, dim=0)),
    "softmax_number": (((),), lambda t, x: t.softmax(x, 0)),
    "cumsum": (((3, 4),), lambda t, x: t.cumsum(x, 1)),
    # shapes
    "reshape": (((3, 4),), lambda t, x: x.reshape(2, -1)),
    "view": (((3, 4),), lambda t, x: x.view(-1)),
    "flatten": (((2, 3, 4),), lambda t, x: t.flatten(x, 1)),
    "unflatten": (((2, 6),), lambda t, x: x.unflatten(1, (2, -1))),
    "squeeze": (((1, 3, 1),), lambda t, x: x.squeeze()),
    "squeeze_dim": (((1, 3, 1),), lambda t, x: t.squeeze(x, -1)),
    "unsqueeze": (((3, 4),), lambda t, x: x.unsqueeze(-1)),
    "permute": (((2, 3, 4),), lambda t, x: x.permute(2, 0, -2)),
    "transpose": (((2, 3, 4),), lambda t, x: t.transpose(x, 0, -1)),
    "t": (((2, 3),), lambda t, x: x.t()),
    "T": (((2, 3),), lambda t, x: x.T),
    "mT": (((2, 3, 4),), lambda t, x: x.mT),
    "movedim": (((2, 3, 4),), lambda t, x: t.movedim(x, (0, 1), (-1, 0))),
    "swapaxes": (((2, 3, 4),), lambda t, x: t.swapaxes(x, 0, 1)),
    "expand": (((3, 1),), lambda t, x: x.expand(2, -1, 4)),
    "expand_as": (((3, 1), (3, 4)), lambda t, x, y: x.expand_as(y) * y),
    "broadcast_to": (((3, 1),), lambda t, x: t.broadcast_to(x, (2, 3, 4))),
    "diagonal": (((3, 4),), lambda t, x: t.diagonal(x, 1)),
    "diagonal_below": (((4, 3),), lambda t, x: t.diagonal(x, -2)),
    "diagonal_batch": (((2, 3, 3),), lambda t, x: x.diagonal(0, -2, -1)),
    "diagonal_none": (((2, 3),), lambda t, x: x.diagonal(5)),
    "diag_of_vector": (((3,),), lambda t, x: t.diag(x, -1)),
    "diag_of_matrix": (((3, 3),), lambda t, x: x.diag(1)),
    "diag_embed": (((2, 3),), lambda t, x: t.diag_embed(x, 1)),
    "trace": (((3, 3),), lambda t, x: t.trace(x)),
    "tril": (((3, 4),), lambda t, x: x.tril(-1)),
    "triu": (((3, 4),), lambda t, x: t.triu(x, diagonal=1)),
    # joining
    "cat": (((2, 3), (1, 3)), lambda t, x, y: t.cat([x, y], dim=0)),
    "cat_last": (((2, 3), (2, 1)), lambda t, x, y: t.cat((x, y), -1)),
    "stack": (((2, 3), (2, 3)), lambda t, x, y: t.stack([x, y], dim=-1)),
    "vstack": (((3,), (3,)), lambda t, x, y: t.vstack([x, y])),
    "hstack": (((2, 3), (2, 1)), lambda t, x, y: t.hstack([x, y])),
    "split": (((5, 2),), lambda t, x: t.split(x, 2)[2] * 3),
    "split_sizes": (((5, 2),), lambda t, x: x.split([1, 4])[1]),
    "chunk": (((2, 5),), lambda t, x: x.chunk(2, dim=1)[1]),
    "tensor_split": (((7, 2),), lambda t, x: t.tensor_split(x, 3)[1]),
    "tensor_split_at": (((7, 2),), lambda t, x: t.tensor_split(x, (2, 5))[1]),
    "unbind": (((3, 2),), lambda t, x: x.unbind(1)[1]),
    "select": (((3, 2),), lambda t, x: x.select(0, -1)),
    "narrow": (((5, 2),), lambda t, x: x.narrow(0, 1, 3)),
    "flip": (((3, 2),), lambda t, x: x.flip(0, 1)),
    "flip_list": (((3, 2),), lambda t, x: t.flip(x, dims=[1])),
    "roll": (((3, 4),), lambda t, x: t.roll(x, (1, -1), (0, 1))),
    "roll_flat": (((3, 4),), lambda t, x: x.roll(5)),
    "repeat": (((2, 3),), lambda t, x: x.repeat(2, 1, 2)),
    "tile": (((2, 3),), lambda t, x: t.tile(x, (2,))),
    "repeat_interleave": (((2, 3),), lambda t, x: x.repeat_interleave(2, dim=1)),
    # indexing
    "int": (((3, 4),), lambda t, x: x[-1]),
    "slices": (((5, 4),), lambda t, x: x[1:4:2, -3:]),
    "none_ellipsis": (((5, 4),), lambda t, x: x[..., None, 1]),
    "two_ints": (((5, 4),), lambda t, x: x[2, 3]),
    "rows": (((5, 4),), lambda t, x: x[t.tensor([0, 2, 2, -1])]),
    "list": (((5, 4),), lambda t, x: x[[0, 2]]),
    "pairs": (((5, 4),), lambda t, x: x[t.tensor([0, 2]), t.tensor([1, 3])]),
    "columns": (((5, 4),), lambda t, x: x[:, t.tensor([[0, 2], [1, 1]])]),
    "int_then_tensor": (((2, 5, 4),), lambda t, x: x[0, :, t.tensor([0, 2])]),
    "apart": (((2, 5, 4),), lambda t, x: x[t.tensor([0, 1]), :, t.tensor([0, 2])]),
    "slice_then_tensor": (((6, 4),), lambda t, x: x[1::2, t.tensor([0, 2])]),
    "mask": (((3, 4),), lambda t, x: x[x > 0]),
    "row_mask": (((3, 4),), lambda t, x: x[t.tensor([True, False, True]), 1:]),
    "number_tensor": (((3, 4),), lambda t, x: x[t.tensor(1)]),
    "gather": (((3, 4),), lambda t, x: x.gather(1, t.tensor([[0, 0], [1, 2], [3, 3]]))),
    "scatter_add": (((3, 4), (3, 2)), lambda t, x, y: x.scatter_add(1, t.tensor([[0, 0], [1, 2], [3, 3]]), y)),
    "scatter": (((3, 4), (3, 2)), lambda t, x, y: x.scatter(1, t.tensor([[0, 1], [1, 2], [3, 0]]), y)),
    "scatter_value": (((3, 4),), lambda t, x: x.scatter(1, t.tensor([[0], [1], [3]]), 2.0)),
    "take_along_dim": (((3, 4),), lambda t, x: t.take_along_dim(x, x.argmax(1, True), 1)),
    "index_select": (((3, 4),), lambda t, x: t.index_select(x, 1, t.tensor([0, 3, 3]))),
    "index_add": (((3, 4), (2, 4)), lambda t, x, y: x.index_add(0, t.tensor([1, 1]), y, alpha=2)),
    "index_copy": (((3, 4), (2, 4)), lambda t, x, y: x.index_copy(0, t.tensor([2, 1]), y)),
    "index_fill": (((3, 4),), lambda t, x: x.index_fill(1, t.tensor([0, 2]), 5.0)),
    "masked_fill": (((3, 4),), lambda t, x: x.masked_fill(x > 0, -1.0)),
    "masked_select": (((3, 4),), lambda t, x: t.masked_select(x, x > 0)),
    "where": (((3, 4), (4,)), lambda t, x, y: t.where(x > 0, x, y)),
    "where_number": (((3, 4),), lambda t, x: t.where(x > 0, x, 0.0)),
    # products
    "matmul": (((2, 3, 4), (4, 2)), lambda t, x, y: x @ y),
    "mm": (((3, 4), (4, 2)), lambda t, x, y: t.mm(x, y)),
    "mv": (((3, 4), (4,)), lambda t, x, y: x.mv(y)),
    "dot": (((4,), (4,)), lambda t, x, y: t.dot(x, y)),
    "bmm": (((2, 3, 4), (2, 4, 2)), lambda t, x, y: t.bmm(x, y)),
    "addmm": (((2,), (3, 4), (4, 2)), lambda t, b, x, y: t.addmm(b, x, y, beta=0.5, alpha=2)),
    "baddbmm": (((2, 3, 2), (2, 3, 4), (2, 4, 2)), lambda t, b, x, y: t.baddbmm(b, x, y)),
    "outer": (((3,), (4,)), lambda t, x, y: t.outer(x, y)),
    "tensordot": (((2, 3, 4), (4, 3, 5)), lambda t, x, y: t.tensordot(x, y, dims=([1, 2], [1, 0]))),
    "tensordot_int": (((2, 3, 4), (3, 4, 5)), lambda t, x, y: t.tensordot(x, y, dims=2)),
    "einsum": (((3, 4), (4, 2)), lambda t, x, y: t.einsum("ij,jk->ik", x, y)),
    "einsum_implicit": (((3, 4), (4, 2)), lambda t, x, y: t.einsum("ij, jk", x, y)),
    "einsum_implicit_order": (((3, 4),), lambda t, x: t.einsum("ba", x)),
    "einsum_ellipsis": (((2, 3, 4), (4, 5)), lambda t, x, y: t.einsum("...ij,jk->...ik", x, y)),
    "einsum_ellipsis_depths": (((5, 2, 3), (3,)), lambda t, x, y: t.einsum("...i,...i", x, y)),
    "einsum_trace": (((3, 3),), lambda t, x: t.einsum("ii", x)),
    "einsum_diagonal": (((2, 3, 3),), lambda t, x: t.einsum("bii->bi", x)),
    "einsum_broadcast": (((1, 4), (3, 4)), lambda t, x, y: t.einsum("ij,ij->ij", x, y)),
    "einsum_sublists": (((3, 4), (4, 2)), lambda t, x, y: t.einsum(x, [0, 1], y, [1, 2], [2, 0])),
    "einsum_three": (((3, 4), (4, 2), (2, 3)), lambda t, x, y, z: t.einsum("ij,jk,ki->", x, y, z)),
    # casts and copies
    "clone": (((3, 4),), lambda t, x: x.clone() * 2),
    "to_double": (((3, 4),), lambda t, x: x.double() * 2),
    "to_half_and_back": (((3,),), lambda t, x: x.to(t.float16).to(t.float32)),
    "detach": (((3, 4),), lambda t, x: x * x.detach()),
    # nn.functional
    "linear": (((3, 4), (2, 4), (2,)), lambda t, x, w, b: t.nn.functional.linear(x, w, b)),
    "linear_batch": (((2, 3, 4), (2, 4), (2,)), lambda t, x, w, b: t.nn.functional.linear(x, w, b)),
    "linear_no_bias": (((3, 4), (2, 4)), lambda t, x, w: t.nn.functional.linear(x, w)),
    "mse_loss": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.mse_loss(x, y)),
    "mse_loss_sum": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.mse_loss(x, y, reduction="sum")),
    "l1_loss": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.l1_loss(x, y, reduction="none")),
    "huber_loss": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.huber_loss(x, y, delta=0.7)),
    "smooth_l1_loss": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y, beta=0.7)),
    "bce": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.binary_cross_entropy(x.sigmoid(), y.sigmoid())),
    "bce_logits": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y.sigmoid())),
    "bce_logits_weights": (((3, 4), (3, 4), (4,)), lambda t, x, y, w: t.nn.functional.binary_cross_entropy_with_logits(
        x, y.sigmoid(), weight=w.sigmoid().detach(), pos_weight=w.exp().detach())),
    "kl_div": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.kl_div(x, y.softmax(1), reduction="batchmean")),
    "conv2d": (((2, 3, 6, 5), (4, 3, 3, 2), (4,)), lambda t, x, w, b: t.nn.functional.conv2d(x, w, b, 2, padding=1)),
    "conv2d_same": (((2, 3, 6, 5), (4, 3, 3, 2)), lambda t, x, w: t.nn.functional.conv2d(x, w, padding="same")),
    "conv2d_groups": (((4, 6, 5), (4, 2, 3, 3)), lambda t, x, w: t.nn.functional.conv2d(x, w, groups=2, dilation=2)),
    "conv1d": (((2, 3, 8), (4, 3, 3), (4,)), lambda t, x, w, b: t.nn.functional.conv1d(x, w, b, padding=1)),
    "max_pool2d": (((2, 3, 6, 6),), lambda t, x: t.nn.functional.max_pool2d(x, 2)),
    "max_pool2d_overlap": (((2, 3, 6, 6),), lambda t, x: t.nn.functional.max_pool2d(x, 3, stride=2, padding=1)),
    "avg_pool2d": (((2, 3, 6, 6),), lambda t, x: t.nn.functional.avg_pool2d(x, (3, 2), stride=2, padding=1)),
    "avg_pool2d_inside": (((2, 3, 6, 6),), lambda t, x: t.nn.functional.avg_pool2d(
        x, 3, 2, 1, count_include_pad=False)),
    "max_pool1d": (((2, 3, 6),), lambda t, x: t.nn.functional.max_pool1d(x, 2)),
    "adaptive_avg_pool2d": (((2, 3, 6, 4),), lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (3, 1))),
    "layer_norm": (((2, 3, 4), (4,), (4,)), lambda t, x, w, b: t.nn.functional.layer_norm(x, (4,), w, b)),
    "batch_norm": (((5, 3, 4), (3,), (3,)), lambda t, x, w, b: t.nn.functional.batch_norm(
        x, None, None, w, b, training=True)),
    "normalize": (((3, 4),), lambda t, x: t.nn.functional.normalize(x)),
    "cosine_similarity": (((3, 4), (3, 4)), lambda t, x, y: t.nn.functional.cosine_similarity(x, y)),
    "pad": (((2, 3),), lambda t, x: t.nn.functional.pad(x, (1, 2, 0, 1), value=3.0)),
    "pad_crop": (((3, 5),), lambda t, x: t.nn.functional.pad(x, (-1, 2))),
    "pad_reflect": (((1, 2, 5),), lambda t, x: t.nn.functional.pad(x, (1, 2), mode="reflect")),
    "pad_replicate": (((1, 2, 5),), lambda t, x: t.nn.functional.pad(x, (1, 2), mode="replicate")),
    "pad_circular": (((1, 2, 5),), lambda t, x: t.nn.functional.pad(x, (1, 2), mode="circular")),
    "glu": (((3, 4),), lambda t, x: t.nn.functional.glu(x)),
    "attention": (((2, 5, 4), (2, 6, 4), (2, 6, 3)), lambda t, q, k, v:
                  t.nn.functional.scaled_dot_product_attention(q, k, v)),
    "attention_causal": (((2, 5, 4), (2, 5, 4), (2, 5, 3)), lambda t, q, k, v:
                         t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)),
    "embedding": (((5, 3),), lambda t, w: t.nn.functional.embedding(t.tensor([[0, 1], [4, 0]]), w)),
    "embedding_padding": (((5, 3),), lambda t, w: t.nn.functional.embedding(t.tensor([0, 1, 4, 0]), w, padding_idx=0)),
    "cross_entropy": (((4, 3),), lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([0, 2, 1, 2]))),
    "cross_entropy_sum": (((4, 3),), lambda t, x: t.nn.functional.cross_entropy(
        x, t.tensor([0, 2, 1, 2]), reduction="sum")),
    "cross_entropy_ignore": (((4, 3),), lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([0, -100, 1, 2]))),
    "cross_entropy_ignore_class": (((4, 3),), lambda t, x: t.nn.functional.cross_entropy(
        x, t.tensor([0, 0, 1, 2]), ignore_index=0)),
    "cross_entropy_all": (((4, 3), (3,)), lambda t, x, w: t.nn.functional.cross_entropy(
        x, t.tensor([0, -100, 1, 2]), weight=w.exp().detach(), label_smoothing=0.1)),
    "cross_entropy_none": (((4, 3), (3,)), lambda t, x, w: t.nn.functional.cross_entropy(
        x, t.tensor([0, -100, 1, 2]), weight=w.exp().detach(), reduction="none")),
    "cross_entropy_image": (((2, 3, 2, 2),), lambda t, x: t.nn.functional.cross_entropy(
        x, t.tensor([[[0, 1], [2, 0]], [[1, 1], [2, 2]]]), label_smoothing=0.2)),
    "cross_entropy_one": (((3,),), lambda t, x: t.nn.functional.cross_entropy(x, t.tensor(1))),
    "cross_entropy_probabilities": (((4, 3), (4, 3), (3,)), lambda t, x, y, w: t.nn.functional.cross_entropy(
        x, y.softmax(1), weight=w.exp().detach(), label_smoothing=0.1)),
    "nll_loss": (((4, 3),), lambda t, x: t.nn.functional.nll_loss(x.log_softmax(1), t.tensor([0, 2, 1, 2]))),
}  # fmt: skip
for _name, _args in {
    "relu": (), "sigmoid": (), "tanh": (), "gelu": (), "silu": (), "leaky_relu": (0.1,), "elu": (0.7,), "selu": (),
    "softplus": (), "logsigmoid": (), "softsign": (), "tanhshrink": (), "mish": (), "hardtanh": (), "relu6": (),
    "hardsigmoid": (), "hardswish": (), "softmin": (1,),
}.items():  # fmt: skip
    CASES[_name] = (((3, 4),), lambda t, x, n=_name, a=_args: getattr(t.nn.functional, n)(x, *a))
CASES["gelu_tanh"] = (((3, 4),), lambda t, x: t.nn.functional.gelu(x, approximate="tanh"))
CASES["softplus_beta"] = (((3, 4),), lambda t, x: t.nn.functional.softplus(x, 2.0, 1.0))


def run(module, function, arrays):
    tensors = [module.tensor(a, requires_grad=True) for a in arrays]
    result = function(module, *tensors)
    if result.requires_grad:
        weights = module.tensor(np.linspace(0.5, 1.5, max(result.numel(), 1)).astype(arrays[0].dtype))
        (result * weights[: result.numel()].reshape(result.shape)).sum().backward()
    return result, [x.grad for x in tensors]


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", CASES)
def test_value_dtype_and_gradients_are_pytorchs(name, dtype):
    shapes, function = CASES[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.normal(size=s).astype(dtype) for s in shapes]
    got, grads = run(eager, function, arrays)
    want, true_grads = run(torch, function, arrays)
    # PyTorch's hard activations divide by a float32 6 also in float64
    coarse = dtype is np.float32 or name.startswith("hards")
    tolerance = {"rtol": 2e-5, "atol": 2e-6} if coarse else {"rtol": 1e-10, "atol": 1e-12}
    assert str(got.dtype) == str(want.dtype)
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), **tolerance)
    for g, true in zip(grads, true_grads, strict=True):
        zeros = np.zeros(())
        np.testing.assert_allclose(
            zeros if g is None else g.numpy(), zeros if true is None else true.numpy(), **tolerance
        )


KINKS = {
    "clamp at the bounds": lambda t: t.clamp(t.tensor([-1.0, 0.0, 1.0], requires_grad=True), -1.0, 1.0),
    "max of ties": lambda t: t.tensor([2.0, 2.0, 1.0], requires_grad=True).max(),
    "max(dim) of ties": lambda t: t.tensor([2.0, 2.0, 1.0], requires_grad=True).max(0).values,
    "std of constants": lambda t: t.tensor([2.0, 2.0], requires_grad=True).std(),
    "norm at zero": lambda t: t.tensor([0.0, 0.0], requires_grad=True).norm(),
    "leaky_relu at zero": lambda t: t.nn.functional.leaky_relu(t.tensor([0.0], requires_grad=True), 0.1),
    "elu, large and zero": lambda t: t.nn.functional.elu(t.tensor([0.0, 1000.0], requires_grad=True)),
    "hardtanh at the bounds": lambda t: t.nn.functional.hardtanh(t.tensor([-1.0, 1.0], requires_grad=True)),
    "prod with a zero": lambda t: t.tensor([0.0, 2.0, 3.0], requires_grad=True).prod(),
    "masked logits": lambda t: t.nn.functional.cross_entropy(
        t.tensor([[0.0, -float("inf"), 1.0]], requires_grad=True), t.tensor([0])),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_subgradients_are_pytorchs(name):
    def leaf_gradient(t):
        leaves = []

        class Recorder:
            nn = t.nn

            def __getattr__(self, attribute):
                return getattr(t, attribute)

            def tensor(self, *args, **kwargs):
                made = t.tensor(*args, **kwargs)
                leaves.append(made)
                return made

        KINKS[name](Recorder()).sum().backward()
        return leaves[0].grad.numpy()

    np.testing.assert_allclose(leaf_gradient(eager), leaf_gradient(torch), rtol=1e-6)


ASSIGNMENTS = {
    "int": lambda t, x, v: x.__setitem__(1, v[0]),
    "slice": lambda t, x, v: x.__setitem__((slice(0, 3, 2), slice(1, 3)), v[:2, :2]),
    "number": lambda t, x, v: x.__setitem__((..., 0), 5.0),
    "rows": lambda t, x, v: x.__setitem__(t.tensor([2, 0]), v[:2]),
    "pairs": lambda t, x, v: x.__setitem__((t.tensor([2, 0]), t.tensor([1, 1])), v[0, :2]),
    "mask": lambda t, x, v: x.__setitem__(x > 0, -1.0),
    "mask values": lambda t, x, v: x.__setitem__(t.tensor([True, False, True]), v[:2]),
    "slice and rows": lambda t, x, v: x.__setitem__((slice(1, None), t.tensor([0, 2])), v[:2, :2]),
    "broadcast": lambda t, x, v: x.__setitem__(slice(1, None), v[0]),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_assignment_is_pytorchs(name, recorded):
    arrays = [np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32) for _ in range(2)]
    results = []
    for t in (eager, torch):
        leaf, value = (t.tensor(a, requires_grad=recorded) for a in arrays)
        x = leaf * 1
        ASSIGNMENTS[name](t, x, value)
        if recorded:
            (x * x).sum().backward()
            grads = [np.zeros((3, 4)) if g is None else g.numpy() for g in (leaf.grad, value.grad)]
        results.append([x.detach().numpy(), *(grads if recorded else ())])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


UPDATES = {
    "add_": lambda t, x, y, z: x.add_(y, alpha=0.3),
    "add_ number": lambda t, x, y, z: x.add_(2.5),
    "sub_": lambda t, x, y, z: x.sub_(y, alpha=2),
    "mul_": lambda t, x, y, z: x.mul_(y),
    "div_": lambda t, x, y, z: x.div_(z),
    "addcmul_": lambda t, x, y, z: x.addcmul_(y, z, value=0.1),
    "addcdiv_": lambda t, x, y, z: x.addcdiv_(y, z, value=-0.1),
    "lerp_": lambda t, x, y, z: x.lerp_(y, 0.1),
    "lerp_ far": lambda t, x, y, z: x.lerp_(y, 0.9),
    "clamp_": lambda t, x, y, z: x.clamp_(-0.3, 0.3),
    "zero_": lambda t, x, y, z: x.zero_(),
    "fill_": lambda t, x, y, z: x.fill_(3.0),
    "copy_": lambda t, x, y, z: x.copy_(y[0]),
    "copy_ double": lambda t, x, y, z: x.copy_(y.double()),
    "masked_fill_": lambda t, x, y, z: x.masked_fill_(y > 0, 7.0),
    "scatter_": lambda t, x, y, z: x.scatter_(1, t.tensor([[0], [1], [2]]), 1.0),
    "index_add_": lambda t, x, y, z: x.index_add_(0, t.tensor([0, 0]), y[:2]),
    "operators": lambda t, x, y, z: x.__iadd__(y).__imul__(z),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", UPDATES)
def test_update_is_pytorchs_and_in_the_same_memory(name, recorded):
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=(3, 4)).astype(np.float32), *rng.uniform(0.5, 2, size=(2, 3, 4)).astype(np.float32)]
    results = []
    for t in (eager, torch):
        leaves = [t.tensor(a, requires_grad=recorded) for a in arrays]
        x = leaves[0] * 1
        before = x.detach()
        assert UPDATES[name](t, x, *leaves[1:]) is x
        np.testing.assert_array_equal(before.numpy(), x.detach().numpy())
        if recorded and x.requires_grad:
            (x * x).sum().backward()
        results.append([x.detach().numpy(), *(np.zeros(()) if p.grad is None else p.grad.numpy() for p in leaves)])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


CREATIONS = {
    "tensor floats": lambda t: t.tensor([[1.5, 2], [3, 4]]),
    "tensor ints": lambda t: t.tensor([1, 2]),
    "tensor bools": lambda t: t.tensor([True, False]),
    "tensor mixed": lambda t: t.tensor([True, 2, 3.5]),
    "tensor complex": lambda t: t.tensor([1j, 2]),
    "tensor empty": lambda t: t.tensor([]),
    "tensor numpy scalar": lambda t: t.tensor(np.float64(1.5)),
    "tensor of numpy": lambda t: t.tensor(np.arange(3, dtype=np.int16)),
    "tensor dtype": lambda t: t.tensor([1.7, -1.7], dtype=t.int64),
    "tensor number": lambda t: t.tensor(3),
    "zeros": lambda t: t.zeros(2, 3),
    "ones": lambda t: t.ones((2, 3), dtype=t.int32),
    "full": lambda t: t.full((2,), 7),
    "full bool": lambda t: t.full((2,), True),
    "zeros_like": lambda t: t.zeros_like(t.ones(2, dtype=t.float64)),
    "full_like": lambda t: t.full_like(t.ones(2, dtype=t.int64), 3),
    "new_zeros": lambda t: t.ones(1, dtype=t.float64).new_zeros(2, 2),
    "arange": lambda t: t.arange(5),
    "arange floats": lambda t: t.arange(0.5, 3, 0.7),
    "arange down": lambda t: t.arange(5, 0, -2),
    "arange dtype": lambda t: t.arange(3, dtype=t.float32),
    "linspace": lambda t: t.linspace(-3, 10, 7),
    "linspace one": lambda t: t.linspace(2, 3, 1),
    "logspace": lambda t: t.logspace(0, 2, 3),
    "eye": lambda t: t.eye(2, 3),
    "tril_indices": lambda t: t.tril_indices(3, 3, -1),
    "nonzero": lambda t: t.nonzero(t.tensor([[0, 1], [2, 0]])),
    "argmax": lambda t: t.tensor([[1.0, 3.0], [5.0, 2.0]]).argmax(),
    "argmax dim": lambda t: t.tensor([[1.0, 3.0], [5.0, 2.0]]).argmax(1, keepdim=True),
    "argmin keep": lambda t: t.tensor([[1.0, 3.0], [5.0, 2.0]]).argmin(keepdim=True),
    "any": lambda t: t.tensor([[0, 1], [0, 0]]).any(1),
    "all": lambda t: t.tensor([[0, 1], [1, 1]]).all(),
    "count_nonzero": lambda t: t.tensor([[0, 1], [1, 1]]).count_nonzero(0),
    "sum of bools": lambda t: t.tensor([True, True]).sum(),
    "sum of bytes": lambda t: t.tensor([200, 100], dtype=t.uint8).sum(),
    "int division": lambda t: t.div(t.tensor([7, -7, 6]), 2, rounding_mode="trunc"),
    "int clamp": lambda t: t.tensor([1, 5]).clamp(max=3),
    "int clamp by float": lambda t: t.tensor([1, 5]).clamp(min=1.5),
    "int power": lambda t: t.tensor([1, 5]) ** 2,
    "bool to float": lambda t: t.tensor([True]).float(),
    "one_hot": lambda t: t.nn.functional.one_hot(t.tensor([0, 2])),
    "isclose": lambda t: t.isclose(
        t.tensor([1.0, float("inf"), float("nan")]), t.tensor([1.0 + 1e-7, float("inf"), float("nan")])),
    "cat promotes": lambda t: t.cat([t.tensor([1]), t.tensor([1.5])]),
    "where numbers": lambda t: t.where(t.tensor([True, False]), 1, 2),
    "max of ints": lambda t: t.tensor([[1, 3], [5, 2]]).max(1).values,
    "isclose nan": lambda t: t.isclose(t.tensor([float("nan")]), t.tensor([float("nan")]), equal_nan=True),
    "one element std": lambda t: t.ones(1).var(correction=0),
}  # fmt: skip


@pytest.mark.parametrize("name", CREATIONS)
def test_results_without_gradient_are_pytorchs_bit_for_bit(name):
    got, want = CREATIONS[name](eager), CREATIONS[name](torch)
    assert str(got.dtype) == str(want.dtype)
    np.testing.assert_array_equal(got.numpy(), want.numpy(), strict=True)
