"""More calls for `tests.eager.function_cases`: other dtypes on the way, factors, kinks, complex numbers."""

from __future__ import annotations

PAIR = ((3, 4), (3, 4))


def _complex(t, x, y):
    return t.complex(x, y)


def _whole(t, x):
    return (x * 5).to(t.int8)


CASES = {
    "add_alpha_narrow": (((3,),), lambda t, x: x + t.add(_whole(t, x), _whole(t, x), alpha=-100)),
    "wrapped_number": (((3,),), lambda t, x: x + (_whole(t, x) + 1000)),
    "integer_power": (((3, 4),), lambda t, x: x + _whole(t, x) ** t.tensor([-1, 0, 1, 2])),
    "addmm_no_input": (((3, 2), (3, 4), (4, 2)), lambda t, c, x, y: t.addmm(c, x, y, beta=0, alpha=0.5)),
    "addr_factors": (((3, 4), (3,), (4,)), lambda t, m, x, y: t.addr(m, x, y, beta=0.3, alpha=2)),
    "tensordot_ones": (((2, 3, 1), (3, 4, 2)), lambda t, x, y: t.tensordot(x, y, dims=([1, 2], [0, 1]))),
    "fill_tensor": (((3, 4), ()), lambda t, x, v: t.fill(x, v)),
    "clamp_nan": (
        ((3, 4),),
        lambda t, x: t.clamp(x, t.tensor([float("nan"), -1.0, 0.0, 1.0]).to(x.dtype)).nan_to_num(),
    ),
    "logit_eps_crossed": (((3, 4),), lambda t, x: t.logit(x.sigmoid(), 0.6)),
    "ldexp_whole": (((3, 2),), lambda t, x: t.ldexp(x, t.tensor([3, 20]))),
    "std_complex": (PAIR, lambda t, x, y: t.std(_complex(t, x, y), 1)),
    "var_mean_complex": (PAIR, lambda t, x, y: sum(v.abs() for v in t.var_mean(_complex(t, x, y), 0))),
    "logsumexp_complex": (PAIR, lambda t, x, y: t.logsumexp(_complex(t, x, y) * 3, 1).imag),
    "renorm_complex": (PAIR, lambda t, x, y: t.renorm(_complex(t, x, y), 2, 0, 1.0).abs()),
    "power_complex": (PAIR, lambda t, x, y: (_complex(t, x, y) ** _complex(t, y, x)).real),
    "sgn_complex": (PAIR, lambda t, x, y: t.sgn(_complex(t, x, y)).imag),
    "zeta_left": (((3, 4),), lambda t, x: t.special.zeta(3, x - 4)),
    "polygamma_left": (((3, 4),), lambda t, x: t.polygamma(2, x.tanh() * 0.4 - 3.5)),
}
