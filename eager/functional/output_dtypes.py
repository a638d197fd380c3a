"""Which dtypes `out=` may have, and what PyTorch says of one that it may not: a table of classes of functions.

A function in no row takes what its result can be cast to. One that returns several tensors takes exactly their dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from graphc.ops.dtypes import BOOL, INT32, INT64, category, is_floating, is_inexact, kind
from graphc.ops.rules import c_name, torch_name

UINT8 = np.dtype(np.uint8)
# whether a result of dtype `source`, made of a tensor of dtype `given`, may go into one of dtype `goal`
Test = Callable[[np.dtype, np.dtype, np.dtype], bool]


class Rule(NamedTuple):
    """What is accepted, and the message otherwise. Its fields: source, goal, given (also as C names), name, transform.

    A tuple of messages has one for each output.
    """

    accepts: Test
    message: str | tuple[str, ...]
    error: type[Exception] = RuntimeError


_same: Test = lambda source, goal, given: source == goal
_castable: Test = lambda source, goal, given: category(source) <= category(goal)
_boolean: Test = lambda source, goal, given: goal == BOOL
_truth: Test = lambda source, goal, given: goal in (BOOL, UINT8)
_real: Test = lambda source, goal, given: kind(goal) != "c"
_real_like_given: Test = lambda source, goal, given: kind(goal) != "c" or kind(given) == "c"
_complex: Test = lambda source, goal, given: kind(goal) == "c"
_floating: Test = lambda source, goal, given: is_floating(goal)
_inexact: Test = lambda source, goal, given: is_inexact(goal)
_floating_if_inexact: Test = lambda source, goal, given: is_floating(goal) or not is_inexact(given)
_any: Test = lambda source, goal, given: True
# the dtype of the argument; of a complex one also that of a real result
_same_or_magnitude: Test = lambda source, goal, given: goal == given or (kind(given) == "c" and kind(goal) != "c")

CAST = Rule(_castable, "result type {source} can't be cast to the desired output type {goal}")
EXACT = Rule(_same, "Expected out tensor to have dtype {c_source}, but got {c_goal} instead")
FOUND = Rule(_same, "Found dtype {goal} but expected {source}")
SCALAR_TYPE = Rule(_same, "expected scalar_type {source} but found {goal}")
UNQUOTED = Rule(_same, "expected scalar type {source} but found {goal}")
NOT_BOOLEAN = Rule(_boolean, "{name} does not support non-boolean outputs.")
TRUTH = Rule(_truth, "{name} only supports bool tensor for result, got: {goal}")
AS_INPUT = Rule(
    _same,
    "Expected the dtype for input and out to match, but got {source} for input's dtype and {goal} for out's dtype.",
)
JOINED = Rule(_castable, "torch.cat(): input types can't be cast to the desired output type {goal}", TypeError)
PRODUCT = Rule(_same, "result dtype {goal} does not match input dtype {source}")
SAME_SCALAR_TYPE = Rule(_same, "{name}(): self and result must have the same scalar type")
QUANTILE = Rule(_same, "quantile() out tensor must be same dtype as the input tensor")
NAN_SUM = Rule(_floating_if_inexact, "\"nansum_cpu\" not implemented for '{goal}'", NotImplementedError)
COMPLEX_OUT = Rule(_complex, "{transform} expects a complex output tensor, but got {goal}")
FLOAT_OUT = Rule(_floating, "{transform} expects a floating point output tensor, but got {goal}")
NORM = Rule(_same, "{public} expected out tensor dtype {source} but got: {goal}")
PARTS = Rule(_same, "Expected object of scalar type {source} but got scalar type {goal} for argument 'out'")
DEVIATION = Rule(_real_like_given, "\"std_cpu\" not implemented for '{goal}'", NotImplementedError)
SEARCH = (
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
    "whether out_int32 flag is True, but we got output tensor's dtype {{goal}} and out_int32 flag is {flag}"
)
CAN_CAST = (
    "Expected canCast( typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) to be true, but got "
    "false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
)
ANY = Rule(_any, "")


def _safely(prefix: str, *outputs: str) -> Rule:
    """Of functions of linear algebra that compute first and cast then."""
    what = outputs or ("result",)
    messages = tuple(
        f"{prefix}: Expected {name} to be safely castable from {{source}} dtype, but got {name} with dtype {{goal}}"
        for name in what
    )
    return Rule(_castable, messages)


_CLASSES: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    (
        "addmm addmv argmax argmin avg_pool2d avg_pool3d baddbmm bmm cross diag diagonal_scatter gather index_add "
        "index_copy index_reduce isin linalg_cholesky linalg_cholesky_ex linalg_cross linalg_det linalg_eigvalsh "
        "linalg_inv linalg_inv_ex linalg_ldl_solve linalg_lu_solve linalg_solve linalg_solve_ex linalg_svdvals "
        "linalg_vector_norm linear log_softmax lu_solve matmul mm msort "
        "narrow_copy norm prod.dtype renorm scatter scatter_add scatter_reduce select_scatter slice_scatter softmax "
        "sum.dtype cumsum.dtype cumprod.dtype mean.dtype nansum.dtype nanmean.dtype take_along_dim tril triu",
        (EXACT,),
    ),
    ("bitwise_not ceil conj_physical floor frac gelu hardshrink neg negative round sgn sign softplus softshrink "
     "special_round trunc fix", (FOUND,)),
    ("abs absolute", (Rule(_same_or_magnitude, "Found dtype {goal} but expected {given}"), CAST)),
    ("all any", (TRUTH,)),
    ("isneginf isposinf signbit", (NOT_BOOLEAN,)),
    ("amax amin", (AS_INPUT,)),
    ("cat stack hstack vstack dstack row_stack column_stack concat concatenate", (JOINED,)),
    ("dot vdot", (PRODUCT,)),
    ("matmul.scalar linalg_matmul.scalar", (PRODUCT,)),
    ("index_select masked_select", (SAME_SCALAR_TYPE,)),
    ("quantile nanquantile", (QUANTILE,)),
    ("cummax cummin logcumsumexp", (SCALAR_TYPE,)),
    ("linalg_solve_triangular logsigmoid", (UNQUOTED,)),
    ("complex polar", (PARTS,)),
    ("sum prod cumsum cumprod", (ANY,)),
    ("nansum nanmean", (NAN_SUM,)),
    ("max.numbers min.numbers", (Rule(_castable, CAN_CAST),)),
    ("clamp.numbers clip.numbers clamp_min.numbers clamp_max.numbers", (FOUND,)),
    ("bernoulli", (Rule(_real, "\"bernoulli_tensor_cpu_self_\" not implemented for '{goal}'", NotImplementedError),)),
    ("logsumexp special_logsumexp",
     (Rule(_inexact, "logsumexp(): Expected floating point type for result tensor, but got: {goal}"), CAST)),
    ("std var", (DEVIATION, CAST)),
    ("std.lone var.lone inner.0d", (CAST,)),
    ("normal", (Rule(_inexact, "\"normal_kernel_cpu\" not implemented for '{goal}'", NotImplementedError),)),
    ("multinomial", (Rule(_same, "multinomial expects Long tensor out, got: {goal}"),)),
    ("nonzero", (Rule(_same, "nonzero: Expected out tensor to have scalar type {source} but got scalar type{goal}"),)),
    ("nonzero_static", (Rule(_same, "nonzero_static: Expected out tensor to have scalar type {source} but got scalar "
                             "type{goal}"),)),
    ("take", (Rule(_same, "take(): self and out expected to have the same dtype, but got self.dtype = {source} and "
                   "out.dtype = {goal}"),)),
    ("where", (Rule(_same, "Expected out type to be {source} but got {goal}"),)),
    ("nan_to_num", (Rule(_same, "nan_to_num: dtype of out: {goal} should be same as input: {source}"),)),
    ("float_power", (Rule(_same, "the output given to float_power has dtype {goal} but the operation's result requires "
                          "dtype {source}"),)),
    ("heaviside", (Rule(_real, "heaviside is not yet implemented for complex tensors."),
                   Rule(_same, "heaviside is not yet implemented for tensors with different dtypes."))),
    ("ldexp", (Rule(_inexact, "ldexp can't be cast to the desired output type {goal}"), CAST)),
    ("mvlgamma", (Rule(_castable, "mvlgamma: result type {given} can't be cast to the desired output type {source}"),)),
    ("special_multigammaln", (Rule(_castable, "mvlgamma: result type {given} can't be cast to the desired output type "
                                   "{source}"),)),
    ("mv", (Rule(_same, "addmv input tensors must have the same dtype, but got {goal}, {source}, and {source}"),)),
    ("addbmm", (Rule(_same, "self and mat2 must have the same dtype, but got {goal} and {source}"),)),
    ("tensordot inner", (Rule(_same, "tensordot: Expected the output tensor to have dtype {source}, but got an "
                                     "output tensor with dtype {goal}"),)),
    ("histc", (Rule(_same, "torch.histogram: input tensor and hist tensor should have the same dtype, but got input "
                    "{c_source} and hist {c_goal}"),)),
    ("histogram", (Rule(_same, (
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {c_source} and hist "
        "{c_goal}",
        "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got input {c_source} and "
        "bin_edges {c_goal} for dimension 0")),)),
    ("searchsorted bucketize", (
        Rule(lambda source, goal, given: source != INT64 or goal == INT64, SEARCH.format(flag="False")),
        Rule(lambda source, goal, given: source != INT32 or goal == INT32, SEARCH.format(flag="True")))),
    ("frexp", (Rule(_same, ("torch.frexp() expects mantissa to have dtype {c_source} but got {c_goal}",
                            "torch.frexp() expects exponent to have {c_source} dtype but got {c_goal}")),)),
    ("kthvalue", (Rule(_same, ("output values must be of same type as input",
                               "output indices must be of scalar type Long")),)),
    ("mode", (Rule(_same, ("expected scalar type '{source}' but got '{goal}' for values output",
                           "expected scalar type '{source}' but got '{goal}' for indices output")),)),
    ("median nanmedian", (Rule(_same, (
        "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
        "torch.{goal}Tensor does not equal torch.{source}Tensor (while checking arguments for median)",
        "Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.{goal}Tensor instead (while "
        "checking arguments for median)")),)),
    ("fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_rfft fft_rfft2 fft_rfftn fft_ihfft fft_ihfft2 "
     "fft_ihfftn", (COMPLEX_OUT,)),
    ("fft_hfft fft_hfft2 fft_hfftn fft_irfft fft_irfft2 fft_irfftn", (FLOAT_OUT,)),
    ("linalg_norm linalg_matrix_norm", (NORM,)),
    ("linalg_multi_dot", (Rule(_same, "multi_dot(): expected out tensor to have dtype {c_source} but got {c_goal}"),)),
    ("linalg_vecdot", (Rule(_same, "linalg.vecdot: Expected out of dtype{source} but found {goal}"),)),
    ("linalg_matrix_power", (_safely("matrix_power"), EXACT)),
    ("linalg_cond", (_safely("linalg.cond"),)),
    ("linalg_pinv", (_safely("linalg.pinv"),)),
    ("linalg_householder_product", (_safely("torch.linalg.householder_product"),)),
    ("linalg_matrix_rank", (_safely("torch.linalg.matrix_rank"),)),
    ("linalg_eigvals", (_safely("torch.linalg.eigvals", "eigenvalues"),)),
    ("linalg_eig", (_safely("torch.linalg.eig", "eigenvalues", "eigenvectors"),)),
    ("linalg_lstsq", (_safely("torch.linalg.lstsq", "solution", "solution", "rank", "singular_values"),)),
    ("linalg_tensorinv", (_safely("tensorinv"),)),
    ("linalg_tensorsolve", (_safely("tensorsolve"),)),
    ("cholesky", (_safely("cholesky"),)),
    ("cholesky_inverse", (_safely("cholesky_inverse"),)),
    ("cholesky_solve", (_safely("cholesky_solve"),)),
)  # fmt: skip
RULES: dict[str, tuple[Rule, ...]] = {name: rules for names, rules in _CLASSES for name in names.split()}
VARIED = frozenset(name.partition(".")[0] for name in RULES if "." in name)
# reductions that take their terms, and compute, in the dtype of the output, unless they are told another
IN_DTYPE_OF_OUT = frozenset(("sum", "prod", "nansum", "nanmean", "cumsum", "cumprod"))


def check_dtype(name: str, source: np.dtype, goal: np.dtype, given: np.dtype, output: int | None = None,
                variants: tuple[str, ...] = ()) -> None:  # fmt: skip
    """Raise PyTorch's error unless a result of function `name` may go into an `out` of dtype `goal`.

    `source` is the dtype of the result, `given` that of the function's first tensor, `output` the place of the result
    where there are several. The `variants` are "dtype" where the caller asked for the dtype, "lone" of a result of one
    element, "scalar" of one without dims, "0d" of an argument without dims, "numbers" of one tensor beside numbers. A
    row of the table for one of them goes before that of the function.
    """
    default = (CAST,) if output is None else (EXACT,)
    found = variants if output is None else ()
    special = (RULES[f"{name}.{variant}"] for variant in found if f"{name}.{variant}" in RULES)
    for rule in next(special, RULES.get(name, default)):
        if not rule.accepts(source, goal, given):
            message = rule.message if isinstance(rule.message, str) else rule.message[output or 0]
            raise rule.error(
                message.format(
                    name=name, public=name.replace("_", ".", 1), transform=name.removeprefix("fft_").replace("2", "n"),
                    source=torch_name(source), goal=torch_name(goal), given=torch_name(given), c_source=c_name(source),
                    c_goal=c_name(goal),
                )
            )  # fmt: skip
