# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""Special functions. As `torch.special`."""

from collections.abc import Sequence
from eager.core.dtypes import dtype
from eager.core.tensor import Tensor
from eager.types import Number

def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Airy function Ai."""

def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind, of order 0."""

def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind, of order 1."""

def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind, of order 0."""

def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind, of order 1."""

def chebyshev_polynomial_t(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial T_n of the family `chebyshev`."""

def chebyshev_polynomial_u(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial U_n of the family `chebyshev`."""

def chebyshev_polynomial_v(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial V_n of the family `chebyshev`."""

def chebyshev_polynomial_w(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial W_n of the family `chebyshev`."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of the logarithm of the gamma function."""

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-input log(input); 0 at 0, -inf below."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 - erf(input)."""

def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(input**2) erfc(input)."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the error function."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power `input`."""

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-input))."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(input) - 1, exact near 0."""

def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized lower incomplete gamma function. As `torch.igamma`: no gradient of `input`."""

def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized upper incomplete gamma function. As `torch.igammac`: no gradient of `input`."""

def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""

def hermite_polynomial_h(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial H_n of the family `hermite`."""

def hermite_polynomial_he(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial He_n of the family `hermite`."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|input|) i0(input)."""

def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""

def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|input|) i1(input)."""

def laguerre_polynomial_l(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial L_n of the family `laguerre`."""

def legendre_polynomial_p(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial P_n of the family `legendre`."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 + input), exact near 0."""

def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the distribution function of the standard normal distribution."""

def log_softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """log(softmax(input)) along `dim`, in `dtype` if given. As `torch.log_softmax`."""

def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(input / (1 - input)), of `input` limited to [eps, 1 - eps] if that is given. As `torch.logit`."""

def logsumexp(input: Tensor, dim: int | Sequence[int] | None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """log(sum(exp(input))) over `dim`, without overflow. As `torch.logsumexp`."""

def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""

def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind, of order 0."""

def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind, of order 1."""

def multigammaln(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p` >= 1. As `torch.mvlgamma`."""

def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The distribution function of the standard normal distribution. As `torch.special.ndtr`."""

def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the distribution function of the standard normal distribution."""

def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of `digamma`. As `torch.polygamma`. RuntimeError for a negative n."""

def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of the logarithm of the gamma function."""

def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest multiple of 10 ** -decimals, the even one if two are. As `torch.round`."""

def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(input) times the modified Bessel function of the second kind, of order 0."""

def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(input) times the modified Bessel function of the second kind, of order 1."""

def shifted_chebyshev_polynomial_t(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial T_n of the family `shifted_chebyshev`."""

def shifted_chebyshev_polynomial_u(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial U_n of the family `shifted_chebyshev`."""

def shifted_chebyshev_polynomial_v(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial V_n of the family `shifted_chebyshev`."""

def shifted_chebyshev_polynomial_w(input: Tensor | Number | complex, n: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The polynomial W_n of the family `shifted_chebyshev`."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(pi input) / (pi input), and 1 at 0."""

def softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """exp(input) normalized to sum 1 along `dim`, in `dtype` if given. As `torch.softmax`."""

def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind, of order 0."""

def xlog1py(input: Tensor | Number | complex, other: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """input log1p(other); 0 where input is 0."""

def xlogy(input: Tensor | Number | complex, other: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """input log(other); 0 where input is 0."""

def zeta(input: Tensor | Number | complex, other: Tensor | Number | complex, *, out: Tensor | None = None) -> Tensor:
    """The Hurwitz zeta function. As `torch.special.zeta`: no gradient of `input`."""
