"""Variables, default arguments and functions that change.

A case is a generator: it yields a function, or a function and its arguments, and then changes something.
"""

from __future__ import annotations

import contextvars
import functools
import math

import numpy as np

import eager as torch
from eager.nn import functional as F
from tests.capture.changes import X, changed

SCALE = 2.0
FLAG = True
NAME = "relu"
LIST = [1.0, 2.0]
TABLE = {"a": {"b": 2.0}, "other": 1}
WEIGHT = torch.ones(3, requires_grad=True)


@changed("`scale` changed from 1.0 to 2.0")
def closure_float():
    scale = 1.0
    yield lambda x: x * scale
    scale = 2.0


@changed("`SCALE` changed from 2.0 to 3.0")
def global_float():
    global SCALE
    yield lambda x: x * SCALE
    SCALE = 3.0


@changed("`SCALE` was deleted")
def global_deleted():
    global SCALE
    yield lambda x: x * SCALE  # noqa: F821
    del SCALE


@changed("`LATER` was added")
def global_added():
    def f(x):
        try:
            return x * LATER
        except NameError:
            return x

    yield f
    globals()["LATER"] = 2.0


@changed("`len` was added")
def builtin_shadowed():
    yield lambda x: x * len([1, 2])
    globals()["len"] = lambda x: 7


@changed("`scale` changed from 1 to 1.0")
def int_becomes_float():
    scale = 1
    yield lambda x: x * scale
    scale = 1.0


@changed("`scale` changed from 1 to True")
def int_becomes_bool():
    scale = 1
    yield lambda x: x * scale
    scale = True


@changed("`scale` changed from 0.0 to -0.0")
def negative_zero():
    scale = 0.0
    yield lambda x: x / scale
    scale = -0.0


@changed("`scale` changed from nan to 0.0")
def nan_becomes_number():
    scale = math.nan
    yield lambda x: x * scale
    scale = 0.0


@changed("`scale` changed from np.float32(1.0) to np.float64(1.0)")
def numpy_scalar():
    scale = np.float32(1)
    yield lambda x: x * float(scale)
    scale = np.float64(1)


@changed("`flag` changed from True to False")
def closure_flag():
    flag = True
    yield lambda x: x if flag else -x
    flag = False


@changed("`mode` changed from 'relu' to 'tanh'")
def closure_string():
    mode = "relu"
    yield lambda x: F.relu(x) if mode == "relu" else torch.tanh(x)
    mode = "tanh"


@changed("`bias` changed from None to 1.0")
def none_becomes_number():
    bias = None
    yield lambda x: x if bias is None else x + bias
    bias = 1.0


@changed(f"`big` changed from {10**40} to 3")
def big_integer():
    big = 10**40
    yield lambda x: x * float(big)
    big = 3


@changed("`dtype` changed from torch.float32 to torch.float64")
def closure_dtype():
    dtype = torch.float32
    yield lambda x: x.to(dtype)
    dtype = torch.float64


@changed("`scale` changed from 1.0 to 2.0")
def two_closures_deep():
    scale = 1.0

    def outer():
        def inner(x):
            return x * scale

        return inner

    inner = outer()
    yield lambda x: inner(x)
    scale = 2.0


@changed("`scale` changed from 1.0 to 2.0")
def read_in_an_inner_function():
    scale = 1.0

    def f(x):
        def inner(y):
            return y * scale

        return inner(x)

    yield f
    scale = 2.0


@changed("`SCALE` changed from 2.0 to 5.0")
def read_in_a_comprehension():
    global SCALE
    yield lambda x: sum([x * SCALE for _ in range(2)])
    SCALE = 5.0


@changed("`SCALE` changed from 2.0 to 5.0")
def read_in_a_generator_expression():
    global SCALE
    yield lambda x: sum(x * SCALE for _ in range(2))
    SCALE = 5.0


@changed("`scale` changed from 1.0 to 2.0")
def read_in_a_default_function():
    scale = 1.0

    def f(x, g=lambda y: y * scale):
        return g(x)

    yield f
    scale = 2.0


@changed("`f.__defaults__[0]` changed from 1.0 to 2.0")
def default_argument_replaced():
    def f(x, scale=1.0):
        return x * scale

    yield f
    f.__defaults__ = (2.0,)


@changed("`scales[0]` changed from 1.0 to 2.0")
def mutable_default():
    def f(x, scales=[1.0]):  # noqa: B006
        return x * scales[0]

    yield f
    f.__defaults__[0][0] = 2.0


@changed("`f.__kwdefaults__['scale']` changed from 1.0 to 2.0")
def keyword_default():
    def f(x, *, scale=1.0):
        return x * scale

    yield f
    f.__kwdefaults__["scale"] = 2.0


@changed("`f.__code__` is another code")
def code_reloaded():
    def f(x):
        return x * 2

    yield f
    f.__code__ = (lambda x: x * 3).__code__


@changed("`f.gain` changed from 1.0 to 2.0")
def attribute_of_a_function():
    def f(x):
        return x * f.gain

    f.gain = 1.0
    yield f
    f.gain = 2.0


@changed("`VAR` changed from 1.0 to 2.0")
def context_variable():
    VAR.set(1.0)
    yield lambda x: x * VAR.get()
    VAR.set(2.0)


VAR = contextvars.ContextVar("VAR", default=1.0)


# --- functions that are called


def helper(x):
    return x * 2


def helper_of_global(x):
    return x * SCALE


@changed("`helper` is another function")
def helper_rebound():
    global helper
    yield lambda x: helper(x)
    helper = lambda x: x * 3


@changed("`SCALE` changed from 2.0 to 4.0")
def global_of_a_helper():
    global SCALE
    yield lambda x: helper_of_global(x)
    SCALE = 4.0


@changed("`SCALE` changed from 2.0 to 4.0")
def helper_in_a_list():
    global SCALE
    chain = [torch.tanh, helper_of_global]
    yield lambda x: [g(x) for g in chain]
    SCALE = 4.0


@changed("`chain[1]` is another function")
def function_in_a_list_replaced():
    chain = [torch.tanh, helper]
    yield lambda x: [g(x) for g in chain]
    chain[1] = helper_of_global


@changed("`ops['a']` is another function")
def function_in_a_table_replaced():
    ops = {"a": helper, "b": torch.sin}
    yield lambda x: ops["a"](x)
    ops["a"] = helper_of_global


@changed("`SCALE` changed from 2.0 to 4.0")
def helper_in_a_partial():
    global SCALE
    part = functools.partial(helper_of_global)
    yield lambda x: part(x)
    SCALE = 4.0


@changed("`part.keywords['scale']` changed from 1.0 to 2.0")
def keyword_of_a_partial():
    part = functools.partial(lambda x, scale: x * scale, scale=1.0)
    yield lambda x: part(x)
    part.keywords["scale"] = 2.0


@changed("`self.args[0][0]` changed from 1.0 to 2.0")
def list_in_a_compiled_partial():
    scales = [1.0]
    yield functools.partial(lambda scales, x: x * scales[0], scales)
    scales[0] = 2.0


@changed("`SCALE` changed from 2.0 to 4.0")
def wrapped_function():
    global SCALE

    @functools.wraps(helper_of_global)
    def wrapper(*args):
        return helper_of_global(*args)

    yield lambda x: wrapper(x)
    SCALE = 4.0


@changed("`SCALE` changed from 2.0 to 4.0")
def cached_function():
    global SCALE

    @functools.lru_cache
    def cached(n):
        return n * SCALE

    yield lambda x: x * cached(2)
    SCALE = 4.0


@changed("`SCALE` changed from 2.0 to 4.0")
def function_under_no_grad():
    global SCALE
    quiet = torch.no_grad()(helper_of_global)
    yield lambda x: quiet(x)
    SCALE = 4.0


@changed("`SCALE` changed from 2.0 to 4.0")
def function_under_a_transform():
    global SCALE
    derivative = torch.func.grad(lambda x: helper_of_global(x).sum())
    yield lambda x: derivative(x)
    SCALE = 4.0


@changed("`scale` changed from 1.0 to 2.0")
def function_as_argument():
    scale = 1.0

    def g(x):
        return x * scale

    yield (lambda x, g: g(x)), (X, g)
    scale = 2.0


@changed("`scale` changed from 1.0 to 2.0")
def bound_method_as_argument():
    scale = 1.0

    class A:
        def go(self, x):
            return x * scale

    yield (lambda x, g: g(x)), (X, A().go)
    scale = 2.0


@changed("`SCALE` changed from 2.0 to 4.0")
def autograd_function():
    global SCALE

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * SCALE

        @staticmethod
        def backward(ctx, g):
            return g

    yield lambda x: Scaled.apply(x)
    SCALE = 4.0


TEXTS = {
    "that_is_evaluated": "return x * eval('factor + 1')",
    "that_is_made": "return x * eval(name)",
    "that_is_executed": "into = {}; exec('r = factor * 2', globals(), into); return x * into['r']",
    "that_is_compiled": "return x * eval(compile('factor * 2', '<text>', 'eval'))",
}


def global_of_a_text(name):
    def case():
        names = {"factor": 2.0, "name": "factor"}
        exec(f"def f(x):\n    {TEXTS[name]}", names)
        yield names["f"]
        names["factor"] = 3.0

    case.__name__ = f"global_of_a_text_{name}"
    return case


for text in TEXTS:
    changed("`factor` changed from 2.0 to 3.0")(global_of_a_text(text))
