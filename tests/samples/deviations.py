"""Where eager parts from PyTorch by decision, and what the compiled mode compiles for certain values only."""

from __future__ import annotations

# (start of the call, part of the operands, reason); the operands as in `x:f32[3,4] y:f32[4]`
DEVIATIONS: tuple[tuple[str, str, str], ...] = (
    ("F.gelu(x)", "f32[12]", "PyTorch's vector code gives nan at infinity; the exact limit is given here"),
    ("t.median(x, 0)", "[3,4]e", "PyTorch reads other elements of an expanded tensor than its own"),
    ("t.nanmedian(x, 0)", "[3,4]e", "PyTorch reads other elements of an expanded tensor than its own"),
)

# the same where only the gradient is another, or PyTorch refuses one
GRADIENTS: tuple[tuple[str, str, str], ...] = (
    ("t.frexp(x)", "[12]v", "PyTorch's gradient of an infinite operand is nan or 0 by dtype"),
    ("t.floor_divide", "f", "PyTorch refuses the gradient, which is 0"),
    ("x.__rfloordiv__", "f", "PyTorch refuses the gradient, which is 0"),
    ("x.__rmod__", "f", "PyTorch refuses the gradient of a number's remainder, which is that of two tensors"),
    ("t.scatter(x, 1, i, y, reduce=", "", "PyTorch refuses the gradient, which is that of scatter_reduce"),
    ("t.scatter_add", "[4,5]", "PyTorch refuses the gradient if `src` is larger than the index"),
    ("t.scatter_reduce(x, 0, i, y, 'sum')", "c", "PyTorch has no gradient of complex numbers"),
    ("t.select_scatter", "c", "PyTorch has no gradient of complex numbers"),
    ("t.slice_scatter", "c", "PyTorch has no gradient of complex numbers"),
    ("t.nan_to_num", "c", "PyTorch has no gradient of complex numbers"),
    ("F.silu", "c", "PyTorch has no gradient of complex numbers"),
    ("t.special.i1", "f16", "PyTorch has no gradient in 16 bits"),
    ("t.linalg.qr(x, mode='r')", "", "PyTorch computes no Q, and so has no gradient; here it computes Q for it"),
    ("t.prod(x, ", "12]v", "PyTorch's gradient multiplies a zero by an infinity; beside a zero it is 0 here"),
    ("t.cumprod(x, 0, dtype=t.float64)", "c", "PyTorch's gradient takes the imaginary parts for multiplied, too"),
    ("t.special.log_ndtr", "[12]v", "PyTorch's gradient at -inf is inf - inf; the limit is infinity"),
)

# the same of the compiled mode alone, also where it refuses
COMPILED: tuple[tuple[str, str, str], ...] = (
    ("t.empty_like(x).stride()", "]t", "the values of a graph have no memory layout: they count as row-major"),
    ("t.slice_inverse", "", "a graph has no memory around a view"),
)

_PYTHON = "the values become Python's"
_SHAPE = "they decide on the shape"
# (start of the call, part of the operands, why): a program for the values of up to 64 elements, or for the size that
# they give, traced anew for others
BY_VALUE: tuple[tuple[str, str, str], ...] = (
    ("t.histc(x, 1)", "", "they decide on the bins, where no range is given"),
    ("t.bincount(x", "", _SHAPE),
    ("t.unique(x", "", _SHAPE),
    ("t.unique_consecutive(x", "", _SHAPE),
    ("t.masked_select(x", "", _SHAPE),
    ("t.nonzero(x", "", _SHAPE),
    ("t.argwhere(x", "", _SHAPE),
    ("F.one_hot(i)", "", _SHAPE),
    ("x[i]", "i:u8", _SHAPE),
    ("x[m]", "", _SHAPE),
    ("x[:, m]", "", _SHAPE),
    ("x[m, i]", "", _SHAPE),
    ("F.rrelu(x, training=True)", "", "as many random numbers are drawn as elements are negative"),
    ("F.ctc_loss", "", "the labels' values lay out the alignments"),
    ("t.allclose(x", "", _PYTHON),
    ("t.equal(x", "", _PYTHON),
    ("x.reshape(-1)[0].item()", "", _PYTHON),
)
