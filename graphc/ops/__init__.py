"""The op registry: what an op is, and every op. NumPy (and SciPy, on demand) only; no engine."""

from graphc.ops import (  # noqa: F401  (declarations)
    activations,
    assumptions,
    barriers,
    bessel,
    bits,
    collectives,
    compare,
    complexes,
    control,
    determinants,
    draws,
    factorizations,
    fft,
    gamma,
    index,
    linalg,
    local,
    movement,
    nn,
    norms,
    pointwise,
    ranks,
    reduce,
    requirements,
    resampling,
    segments,
    selection,
    sharding,
    solving,
    sorting,
    sparse,
    special,
    spectra,
    standardizing,
    strided,
    updates,
)
from graphc.ops.aval import Aval, Literal, aval_of
from graphc.ops.lens import Lens
from graphc.ops.rounding import Rounding
from graphc.ops.spec import OPS, Check, Kink, Op, Rule, Trait, op

BUILT_IN = frozenset(OPS)  # names; users declare the others

__all__ = [
    "BUILT_IN", "OPS", "Aval", "Check", "Kink", "Lens", "Literal", "Op", "Rounding", "Rule", "Trait", "aval_of", "op",
]  # fmt: skip
