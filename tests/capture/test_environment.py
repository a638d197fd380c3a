"""What a function sees besides its arguments: every change is noticed and named, and nothing else is."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import gc
import itertools
import math
import operator
import os
import random
import sys
import time
import types
import weakref

import numpy as np
import pytest

import eager as torch
from eager import nn
from eager.nn import functional as F
from graphc.capture.environment import Environment
from graphc.capture.snapshots import MISSING

X = torch.ones(2, 3)
CHANGED: list = []
UNCHANGED: list = []

# A case is a generator: it yields a function (or a function and its arguments), and then changes something.


def changed(*messages):
    return lambda case: CHANGED.append(pytest.param(case, messages, id=case.__name__)) or case


def unchanged(case):
    UNCHANGED.append(pytest.param(case, id=case.__name__))
    return case


def started(case):
    generator = case()
    given = next(generator)
    fn, args = given if isinstance(given, tuple) else (given, (X,))
    environment = Environment(fn, args)
    assert environment.holds(), environment.broken()
    assert environment.broken() == []
    return environment, generator, fn, args


@pytest.fixture(autouse=True)
def same_globals():
    before = dict(globals())
    yield
    globals().clear()
    globals().update(before)


@pytest.mark.parametrize(("case", "messages"), CHANGED)
def test_a_change_is_noticed_and_named(case, messages):
    environment, generator, fn, args = started(case)
    fn(*args)
    assert environment.holds(), (environment.broken(), "after the function has run")
    next(generator, None)
    assert not environment.holds()
    found = environment.broken()
    for message in messages:
        assert message in found, found


@pytest.mark.parametrize("case", UNCHANGED)
def test_what_does_not_matter_breaks_nothing(case):
    environment, generator, fn, args = started(case)
    fn(*args)
    next(generator, None)
    assert environment.holds(), environment.broken()
    assert environment.broken() == []


# --- variables

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


# --- objects


class Config:
    rate = 0.5

    def __init__(self, scale=1.0):
        self.scale = scale
        self.unread = 0

    def apply(self, x):
        return x * self.scale

    @property
    def double(self):
        return 2 * self.scale

    @staticmethod
    def fixed(x):
        return x + 1

    @classmethod
    def rated(cls, x):
        return x * cls.rate


class Holder:
    def __init__(self, cfg):
        self.cfg = cfg
        self.items = [cfg]
        self.epoch = 0

    def run(self, x):
        return x * self.cfg.scale

    def run_items(self, x):
        for item in self.items:
            x = x * item.scale
        return x

    def __call__(self, x):
        return self.run(x)


@changed("`cfg.scale` changed from 1.0 to 2.0")
def attribute():
    cfg = Config()
    yield lambda x: x * cfg.scale
    cfg.scale = 2.0


@changed("`cfg.scale` was deleted")
def attribute_deleted():
    cfg = Config()
    yield lambda x: x * cfg.scale
    del cfg.scale


@changed("`cfg` is another Config")
def object_replaced():
    cfg = Config()
    yield lambda x: x * cfg.scale
    cfg = Config()


@changed("`self.cfg.scale` changed from 1.0 to 2.0")
def attribute_of_an_attribute_of_self():
    holder = Holder(Config())
    yield holder.run
    holder.cfg.scale = 2.0


@changed("`self.cfg.scale` changed from 1.0 to 2.0")
def callable_object():
    holder = Holder(Config())
    yield holder
    holder.cfg.scale = 2.0


@changed("`self.cfg` is another Config")
def attribute_of_self_replaced():
    holder = Holder(Config())
    yield holder.run
    holder.cfg = Config(3.0)


@changed("`self.items[0].scale` changed from 1.0 to 2.0")
def attribute_of_an_element():
    holder = Holder(Config())
    yield holder.run_items
    holder.items[0].scale = 2.0


@changed("`self.items[0]` was deleted")
def element_removed():
    holder = Holder(Config())
    yield holder.run_items
    holder.items.clear()


@changed("`cfg.scale` changed from 1.0 to 2.0")
def object_in_an_argument():
    cfg = Config()
    yield (lambda x, cfg: x * cfg.scale), (X, cfg)
    cfg.scale = 2.0


@changed("`options.cfg.scale` changed from 1.0 to 2.0")
def object_in_a_nest_of_arguments():
    cfg = Config()
    yield (lambda x, options: x * options["cfg"].scale), (X, {"cfg": cfg, "y": X})
    cfg.scale = 2.0


@changed("`args[1].scale` changed from 1.0 to 2.0")
def object_in_star_arguments():
    cfg = Config()
    yield (lambda *args: args[0] * args[1].scale), (X, cfg)
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def passed_to_a_helper():
    cfg = Config()

    def scaled(x, c):
        return x * c.scale

    yield lambda x: scaled(x, cfg)
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def local_alias():
    cfg = Config()

    def f(x):
        c = cfg
        return x * c.scale

    yield f
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def returned_by_a_helper():
    cfg = Config()

    def get():
        return cfg

    yield lambda x: x * get().scale
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def chosen_by_an_expression():
    cfg, other = Config(), Config()
    flag = True
    yield lambda x: x * (cfg if flag else other).scale
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def attribute_by_getattr():
    cfg = Config()
    yield lambda x: x * getattr(cfg, "scale")  # noqa: B009
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def attribute_by_computed_name():
    cfg = Config()
    yield lambda x: x * getattr(cfg, "sca" + "LE".lower())
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def attribute_by_vars():
    cfg = Config()
    yield lambda x: x * vars(cfg)["scale"]
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def attribute_by_dict():
    cfg = Config()
    yield lambda x: x * cfg.__dict__["scale"]
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def attribute_by_attrgetter():
    cfg = Config()
    yield lambda x: x * operator.attrgetter("scale")(cfg)
    cfg.scale = 2.0


@changed("`cfg.extra` was added")
def attribute_probed_by_hasattr():
    cfg = Config()
    yield lambda x: x * 2 if hasattr(cfg, "extra") else x
    cfg.extra = 1


@changed("`cfg.extra` was added")
def attribute_with_a_default():
    cfg = Config()
    yield lambda x: x * getattr(cfg, "extra", 1.0)
    cfg.extra = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def property_of_a_field():
    cfg = Config()
    yield lambda x: x * cfg.double
    cfg.scale = 2.0


@changed("`cfg.apply` was added")
def method_replaced_on_the_instance():
    cfg = Config()
    yield lambda x: cfg.apply(x)
    cfg.apply = lambda x: x


@changed("`cfg.apply` is another function")
def method_replaced_on_the_class():
    class Local(Config):
        def apply(self, x):
            return x

    cfg = Local()
    yield lambda x: cfg.apply(x)
    Local.apply = lambda self, x: x * 3


@changed("`cfg.apply` was added")
def inherited_method_overridden_later():
    class Local(Config):
        pass

    cfg = Local()
    yield lambda x: cfg.apply(x)
    Local.apply = lambda self, x: x * 3


@changed("`cfg.rate` changed from 0.5 to 0.25")
def class_attribute():
    class Local:
        rate = 0.5

    cfg = Local()
    yield lambda x: x * cfg.rate
    Local.rate = 0.25


@changed("`cfg.rate` was added")
def class_attribute_shadowed():
    cfg = Config()
    yield lambda x: x * cfg.rate
    cfg.rate = 0.25


@changed("`Local.rate` changed from 0.5 to 0.25")
def attribute_of_a_class():
    class Local:
        rate = 0.5

    yield lambda x: x * Local.rate
    Local.rate = 0.25


@changed("`Local.Inner.rate` changed from 0.5 to 0.25")
def attribute_of_a_nested_class():
    class Local:
        class Inner:
            rate = 0.5

    yield lambda x: x * Local.Inner.rate
    Local.Inner.rate = 0.25


@changed("`Local.rate` changed from 0.5 to 0.25")
def class_attribute_in_a_class_method():
    class Local:
        rate = 0.5

        @classmethod
        def go(cls, x):
            return x * cls.rate

    yield lambda x: Local.go(x)
    Local.rate = 0.25


@changed("`scale` changed from 1.0 to 2.0")
def closure_of_a_static_method():
    scale = 1.0

    class Local:
        @staticmethod
        def go(x):
            return x * scale

    yield lambda x: Local.go(x)
    scale = 2.0


@changed("`scale` changed from 1.0 to 2.0")
def closure_of_an_instantiated_class():
    scale = 1.0

    class Local:
        def __init__(self, x):
            self.value = x * scale

    yield lambda x: Local(x).value
    scale = 2.0


@changed("`scale` changed from 1.0 to 2.0")
def closure_of_a_method_of_a_new_object():
    scale = 1.0

    class Local:
        def go(self, x):
            return x * scale

    yield lambda x: Local().go(x)
    scale = 2.0


@changed("`self.scale` changed from 1.0 to 2.0")
def method_of_a_base():
    class Base:
        def __init__(self):
            self.scale = 1.0

        def go(self, x):
            return x * self.scale

    class Derived(Base):
        def go(self, x):
            return super().go(x) + 1

    d = Derived()
    yield d.go
    d.scale = 2.0


@changed("`v.scale` changed from 1.0 to 2.0")
def operator_of_an_object():
    class Local:
        def __init__(self):
            self.scale = 1.0

        def __rmul__(self, x):
            return x + self.scale

        def __add__(self, x):
            return x + self.scale

    v = Local()
    yield lambda x: v + x
    v.scale = 2.0


@changed("`v.data` changed from 1.0 to 2.0")
def dynamic_attribute():
    class Local:
        def __init__(self):
            self.data = 1.0

        def __getattr__(self, name):
            if name == "value":
                return self.data
            raise AttributeError(name)

    v = Local()
    yield lambda x: x * v.value
    v.data = 2.0


@changed("`cfg.__class__` is another class")
def class_of_an_object():
    class Local(Config):
        def apply(self, x):
            return x

    cfg = Config()

    def use(c, x):
        return c.apply(x)

    yield lambda x: use(cfg, x)
    cfg.__class__ = Local


@changed("`p.x` changed from 1.0 to 2.0")
def slots():
    class Point:
        __slots__ = ("x", "y")

    p = Point()
    p.x, p.y = 1.0, 2.0
    yield lambda x: x * p.x
    p.x = 2.0


@changed("`p.x` was deleted")
def slot_deleted():
    class Point:
        __slots__ = ("x",)

    p = Point()
    p.x = 1.0
    yield lambda x: x * p.x
    del p.x


@changed("`d.scale` changed from 1.0 to 2.0")
def dataclass():
    @dataclasses.dataclass
    class Data:
        scale: float = 1.0

    d = Data()
    yield lambda x: x * d.scale
    d.scale = 2.0


@changed("`d.scale` changed from 1.0 to 2.0")
def dataclass_taken_apart():
    @dataclasses.dataclass
    class Data:
        scale: float = 1.0

    d = Data()
    yield lambda x: x * dataclasses.asdict(d)["scale"]
    d.scale = 2.0


@changed("`d.scale` changed from 1.0 to 2.0")
def dataclass_argument():
    @dataclasses.dataclass
    class Data:
        x: torch.Tensor
        inner: Config

    d = Config()
    yield (lambda data: data.x * d.scale), (Data(X, Config()),)
    d.scale = 2.0


@changed("`p.scale` changed from 1.0 to 2.0")
def namedtuple():
    Pair = collections.namedtuple("Pair", "scale shift")
    p = Pair(1.0, 2.0)
    yield lambda x: x * p.scale
    p = Pair(2.0, 2.0)


@changed("`cfg.scale` changed from 1.0 to 2.0")
def namespace():
    cfg = types.SimpleNamespace(scale=1.0)
    yield lambda x: x * cfg.scale
    cfg.scale = 2.0


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@changed("`mode` changed from <Mode.FAST: 1> to <Mode.SLOW: 2>")
def enumeration():
    mode = Mode.FAST
    yield lambda x: x * 2 if mode is Mode.FAST else x
    mode = Mode.SLOW


@changed("`config.scale` changed from 1.0 to 2.0")
def attribute_of_a_module_of_the_user():
    config = types.ModuleType("config")
    config.scale = 1.0
    yield lambda x: x * config.scale
    config.scale = 2.0


@changed("`config.table['a']` changed from 1 to 2")
def table_in_a_module_of_the_user():
    config = types.ModuleType("config")
    config.table = {"a": 1}
    yield lambda x: x * config.table["a"]
    config.table["a"] = 2


@changed("`config.run` is another function")
def function_of_a_module_of_the_user():
    config = types.ModuleType("config")
    config.run = helper
    yield lambda x: config.run(x)
    config.run = helper_of_global


@changed("`cfg.me.scale` changed from 1.0 to 2.0")
def cyclic_objects():
    cfg = Config()
    cfg.me = cfg

    def f(x):
        c = cfg.me
        return x * c.me.scale

    yield f
    cfg.scale = 2.0


@changed("`ref().scale` changed from 1.0 to 2.0")
def weak_reference():
    cfg = Config()
    ref = weakref.ref(cfg)
    yield lambda x: x * ref().scale
    cfg.scale = 2.0


@changed("`guard.scale` changed from 1.0 to 2.0")
def context_manager():
    class Guard:
        scale = None

        def __init__(self):
            self.scale = 1.0

        def __enter__(self):
            return self.scale

        def __exit__(self, *error):
            return None

    guard = Guard()

    def f(x):
        with guard as s:
            return x * s

    yield f
    guard.scale = 2.0


@changed("`holder.scale` changed from 1.0 to 2.0")
def descriptor():
    class Field:
        def __get__(self, instance, owner):
            return self if instance is None else instance.scale

    class Has:
        value = Field()

        def __init__(self):
            self.scale = 1.0

    holder = Has()
    yield lambda x: x * holder.value
    holder.scale = 2.0


# --- containers


@changed("`xs[1]` changed from 2.0 to 3.0")
def element_of_a_list():
    xs = [1.0, 2.0]
    yield lambda x: x * sum(xs)
    xs[1] = 3.0


@changed("`xs[2]` was added")
def appended():
    xs = [1.0, 2.0]
    yield lambda x: x * sum(xs)
    xs.append(3.0)


@changed("`xs[1]` changed from 1 to True")
def element_of_another_type():
    xs = [1, 1]
    yield lambda x: x * sum(xs)
    xs[1] = True


@changed("`xs[0][1]` changed from 2 to 5")
def element_of_a_nested_list():
    xs = [[1, 2], [3]]
    yield lambda x: x * sum(sum(row) for row in xs)
    xs[0][1] = 5


@changed("`LIST[0]` changed from 1.0 to 9.0")
def list_rebound():
    global LIST
    yield lambda x: x * sum(LIST)
    LIST = [9.0, 2.0]


@changed("`d['a']` changed from 1 to 2")
def entry_of_a_dict():
    d = {"a": 1}
    yield lambda x: x * d["a"]
    d["a"] = 2


@changed("`d['a']['b']` changed from 1 to 2")
def entry_of_a_nested_dict():
    d = {"a": {"b": 1}}
    yield lambda x: x * d["a"]["b"]
    d["a"]["b"] = 2


@changed("`d['b']` was added")
def entry_added():
    d = {"a": 1}
    yield lambda x: x * sum(d.values())
    d["b"] = 2


@changed("`d['b']` was added")
def entry_asked_for():
    d = {"a": 1}
    yield lambda x: x * d.get("b", 1)
    d["b"] = 2


@changed("`d['a']` was deleted")
def entry_deleted():
    d = {"a": 1}
    yield lambda x: x * d["a"]
    del d["a"]


@changed("`d` changed from {'a': 1, 'b': 2} to {'b': 2, 'a': 1}")
def order_of_a_dict():
    d = {"b": 2, "a": 1}
    d = {"a": 1, "b": 2}
    yield lambda x: x * float("".join(str(v) for v in d.values()))
    d["a"] = d.pop("a")


@changed("`d['a']` changed from 1 to 2")
def entry_by_variable_key():
    d = {"a": 1}
    key = "a"
    yield lambda x: x * d[key]
    d["a"] = 2


@changed("`key` changed from 'a' to 'b'")
def the_key_itself():
    d = {"a": 1, "b": 2}
    key = "a"
    yield lambda x: x * d[key]
    key = "b"


@changed("`d.data['n']` changed from 1 to 2")
def user_dict():
    d = collections.UserDict(n=1)
    yield lambda x: x * d["n"]
    d["n"] = 2


@changed("`SCALE` changed from 2.0 to 4.0")
def single_dispatch():
    global SCALE

    @functools.singledispatch
    def scaled(n, x):
        return x

    @scaled.register
    def _(n: int, x):
        return x * SCALE

    yield lambda x: scaled(1, x)
    SCALE = 4.0


@changed("`os.environ._data[b'GRAPHC_TEST']` was added")
def environment_variable():
    yield lambda x: x * float(os.environ.get("GRAPHC_TEST", "1"))
    os.environ["GRAPHC_TEST"] = "2"


@changed("`os.environ._data[b'GRAPHC_TEST']` was added")
def environment_variable_by_getenv():
    yield lambda x: x * float(os.getenv("GRAPHC_TEST", "1"))
    os.environ["GRAPHC_TEST"] = "2"


@pytest.fixture(autouse=True)
def no_environment_variable(monkeypatch):
    monkeypatch.delenv("GRAPHC_TEST", raising=False)
    yield
    os.environ.pop("GRAPHC_TEST", None)


@changed("`math_of_mine.factor` changed from 1.0 to 2.0")
def module_imported_inside():
    module = sys.modules["math_of_mine"] = types.ModuleType("math_of_mine")
    module.factor = 1.0

    def f(x):
        import math_of_mine

        return x * math_of_mine.factor

    yield f
    module.factor = 2.0


@changed("`math_of_mine.factor` changed from 1.0 to 2.0")
def name_imported_inside():
    module = sys.modules["math_of_mine"] = types.ModuleType("math_of_mine")
    module.factor = 1.0

    def f(x):
        from math_of_mine import factor

        return x * factor

    yield f
    module.factor = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def parameter_rebound():
    cfg = Config()

    def f(x, c):
        c = c or None
        return x * c.scale

    yield lambda x: f(x, cfg)
    cfg.scale = 2.0


@changed("`c.scale` changed from 1.0 to 2.0")
def argument_rebound():
    cfg = Config()

    def f(x, c):
        c = c or None
        return x * c.scale

    yield f, (X, cfg)
    cfg.scale = 2.0


@changed("`self.scale` changed from 1.0 to 2.0")
def self_as_an_argument():
    cfg = Config()
    yield Config.apply, (cfg, X)
    cfg.scale = 2.0


@changed("`cfg.scale` changed from 1.0 to 2.0")
def dataclass_replaced_fields():
    @dataclasses.dataclass
    class Data:
        scale: float = 1.0

    cfg = Data()

    def use(c, x):
        return x * sum(getattr(c, f.name) for f in dataclasses.fields(c))

    yield lambda x: use(cfg, x)
    cfg.scale = 2.0


@changed("`c.scale` changed from 1.0 to 2.0")
def structural_pattern():
    cfg = Config()

    def use(x, c):
        match c:
            case Config(scale=s):
                return x * s

    yield use, (X, cfg)
    cfg.scale = 2.0


@changed("`NET` has its children in another order".replace("NET", "table"))
def order_of_children():
    table = nn.ModuleDict({"a": nn.Tanh(), "b": nn.ReLU()})

    def f(x):
        for layer in table.values():
            x = layer(x)
        return x

    yield f
    table["a"] = table.pop("a")


@changed("`s` changed from {1} to {1, 2}")
def member_of_a_set():
    s = {1}
    yield lambda x: x * sum(s)
    s.add(2)


@changed("`q[0]` changed from 1.0 to 2.0")
def element_of_a_deque():
    q = collections.deque([1.0])
    yield lambda x: x * sum(q)
    q[0] = 2.0


@changed("`t[0][0]` changed from 1.0 to 2.0")
def list_in_a_tuple():
    t = ([1.0],)
    yield lambda x: x * t[0][0]
    t[0][0] = 2.0


@changed("`t[1]` changed from 2 to 3")
def tuple_rebound():
    t = (1, 2)
    yield lambda x: x * sum(t)
    t = (1, 3)


@changed("`d['n']` changed from 1 to 2")
def default_dict():
    d = collections.defaultdict(int, n=1)
    yield lambda x: x * sum(d.values())
    d["n"] = 2


@changed("`d['n']` changed from 1 to 2")
def counter():
    d = collections.Counter(n=1)
    yield lambda x: x * d["n"]
    d["n"] = 2


@changed("`d.maps[0]['n']` changed from 1 to 2")
def chain_map():
    d = collections.ChainMap({"n": 1})
    yield lambda x: x * d["n"]
    d["n"] = 2


@changed("`d['scale']` changed from 1.0 to 2.0")
def dict_with_attributes():
    class Attributes(dict):
        __getattr__ = dict.__getitem__

    d = Attributes(scale=1.0)
    yield lambda x: x * d.scale
    d["scale"] = 2.0


@changed("`xs.scale` changed from 1.0 to 2.0")
def list_with_an_attribute():
    class Items(list):
        scale = 1.0

    xs = Items([1.0])
    xs.scale = 1.0
    yield lambda x: x * xs.scale * sum(xs)
    xs.scale = 2.0


@changed("`xs[500000]` changed from 500000 to 0")
def long_list():
    xs = list(range(1_000_000))
    yield lambda x: x * float(sum(xs))
    xs[500_000] = 0


@changed("`a` changed from array([1., 2.]) to array([1., 3.])")
def array_content():
    a = np.array([1.0, 2.0])
    yield lambda x: x * float(a.sum())
    a[1] = 3.0


@changed("`a` changed from array([0.]) to array([-0.])")
def array_bits():
    a = np.array([0.0])
    yield lambda x: x * float(1 / (a[0] + 1))
    a[0] = -0.0


@changed("`a` changed from array([1., 2.]) to array([1., 2.], dtype=float32)")
def array_rebound():
    a = np.array([1.0, 2.0])
    yield lambda x: x * float(a.sum())
    a = a.astype(np.float32)


@changed("`arrays[0]` changed from array([1., 2.]) to array([1., 7.])")
def array_in_a_list():
    arrays = [np.array([1.0, 2.0])]
    yield lambda x: x * float(arrays[0].sum())
    arrays[0][1] = 7.0


# --- tensors and modules


@changed("`w` is another tensor")
def tensor_rebound():
    w = torch.ones(3)
    yield lambda x: x * w
    w = torch.ones(3)


@changed("`ws[1]` is another tensor")
def tensor_in_a_list():
    ws = [torch.ones(3), torch.ones(3)]
    yield lambda x: x * ws[0] + ws[1]
    ws[1] = torch.zeros(3)


@changed("`d['w']` is another tensor")
def tensor_in_a_dict():
    d = {"w": torch.ones(3)}
    yield lambda x: x * d["w"]
    d["w"] = torch.zeros(3)


@changed("`w.requires_grad` changed from True to False")
def tensor_frozen():
    w = torch.ones(3, requires_grad=True)
    yield lambda x: x * w
    w.requires_grad_(False)


@changed("`state.h` is another tensor")
def tensor_attribute():
    state = types.SimpleNamespace(h=torch.zeros(3))
    yield lambda x: x + state.h
    state.h = torch.ones(3)


@changed("`w` changed from a tensor to 2.0")
def tensor_becomes_number():
    w = torch.ones(3)
    yield lambda x: x * w
    w = 2.0


class Net(nn.Module):
    gain = 1.0

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.table = nn.ModuleDict({"a": nn.Tanh(), "b": nn.ReLU()})
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)
        self.out = nn.Sequential(nn.Linear(4, 2), nn.Sigmoid())
        self.register_buffer("offset", torch.zeros(4))
        self.w = nn.Parameter(torch.ones(4))
        self.scale = 1.0
        self.seen = 0

    def body(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.table["a"](x)

    def forward(self, x):
        return self.out(self.norm(self.drop(self.body(x))) * self.w * self.scale * self.gain + self.offset)


def net_case(change, *messages):
    """Two cases: the module itself, and a function that calls it."""

    def module():
        net = Net()
        yield net
        change(net)

    def function():
        net = Net()
        yield lambda x: net(x)
        change(net)

    name = change.__name__
    CHANGED.append(pytest.param(module, [m.replace("NET", "self") for m in messages], id=f"{name}-module"))
    CHANGED.append(pytest.param(function, [m.replace("NET", "net") for m in messages], id=f"{name}-function"))


def net_changed(*messages):
    return lambda change: net_case(change, *messages)


@net_changed("`NET.scale` changed from 1.0 to 2.0")
def module_attribute(net):
    net.scale = 2.0


@net_changed("`NET.gain` was added")
def module_class_attribute_shadowed(net):
    net.gain = 2.0


@net_changed("`NET.training` changed from True to False", "`NET.blocks.0.training` changed from True to False")
def module_mode(net):
    net.eval()


@net_changed("`NET.drop.training` changed from True to False")
def mode_of_a_child(net):
    net.drop.eval()


@net_changed("`NET.drop.p` changed from 0.5 to 0.1")
def dropout_rate(net):
    net.drop.p = 0.1


@net_changed("`NET.norm.momentum` changed from 0.1 to 0.2")
def momentum(net):
    net.norm.momentum = 0.2


@net_changed("`NET.norm.eps` changed from 1e-05 to 0.001")
def epsilon(net):
    net.norm.eps = 1e-3


@net_changed("`NET.first` is another Linear")
def child_replaced(net):
    net.first = nn.Linear(3, 4)


@net_changed("`NET.first` changed from a Linear to a Identity")
def child_of_another_class(net):
    net.first = nn.Identity()


@net_changed("`NET.out.1` changed from a Sigmoid to a Tanh")
def child_of_a_sequence(net):
    net.out[1] = nn.Tanh()


@net_changed("`NET.out.2` was added")
def child_appended(net):
    net.out.append(nn.Tanh())


@net_changed("`NET.out.1` was deleted")
def child_removed(net):
    del net.out[1]


@net_changed("`NET.blocks.2` was added")
def block_appended(net):
    net.blocks.append(nn.Linear(4, 4))


@net_changed("`NET.blocks.0` is another Linear")
def blocks_exchanged(net):
    net.blocks[0], net.blocks[1] = net.blocks[1], net.blocks[0]


@net_changed("`NET.table.a` changed from a Tanh to a ReLU")
def entry_of_a_module_dict(net):
    net.table["a"] = nn.ReLU()


@net_changed("`NET.w` is another Parameter")
def parameter_replaced(net):
    net.w = nn.Parameter(torch.zeros(4))


@net_changed("`NET.first.weight` is another Parameter")
def parameter_of_a_child(net):
    net.first.weight = nn.Parameter(torch.zeros(4, 3))


@net_changed("`NET.first.bias` changed from a Parameter to None")
def bias_removed(net):
    net.first.bias = None


@net_changed("`NET.first.weight.requires_grad` changed from True to False")
def parameter_frozen(net):
    net.first.weight.requires_grad_(False)


@net_changed("`NET.offset` is another tensor")
def buffer_replaced(net):
    net.offset = torch.ones(4)


@net_changed("`NET.body` was added")
def method_of_a_module_replaced(net):
    net.body = lambda x: x


@net_changed("`NET.forward` was added")
def forward_replaced(net):
    net.forward = lambda x: x


@net_changed("`NET.first.forward` was added")
def forward_of_a_child_replaced(net):
    net.first.forward = lambda x: x


@net_changed("`NET.first._hooks` was added")
def hook_registered(net):
    net.first.register_forward_hook(lambda module, args, out: out * 2)


@net_changed("`NET._pre_hooks` was added")
def pre_hook_registered(net):
    net.register_forward_pre_hook(lambda module, args: args)


@changed("`scale` changed from 1.0 to 2.0")
def closure_of_a_hook():
    scale = 1.0
    layer = nn.Linear(3, 3)
    layer.register_forward_hook(lambda module, args, out: out * scale)
    yield lambda x: layer(x)
    scale = 2.0


@changed("`layer.gain` changed from 1.0 to 2.0")
def hook_that_reads_its_module():
    layer = nn.Linear(3, 3)
    layer.gain = 1.0
    layer.register_forward_hook(lambda module, args, out: out * module.gain)
    yield lambda x: layer(x)
    layer.gain = 2.0


@changed("`net.scale` changed from 1.0 to 2.0")
def module_as_argument():
    net = Net()
    yield (lambda x, net: net(x)), (X, net)
    net.scale = 2.0


@changed("`nets[1].scale` changed from 1.0 to 2.0")
def modules_in_a_list():
    nets = [Net(), Net()]
    yield lambda x: sum(net(x) for net in nets)
    nets[1].scale = 2.0


@changed("`layer.padding_mode` changed from 'zeros' to 'circular'")
def settings_of_a_layer():
    layer = nn.Conv2d(1, 1, 3)
    yield (lambda x: layer(x)), (torch.ones(1, 1, 5, 5),)
    layer.padding_mode = "circular"


@changed("`layer.extra` changed from 1.0 to 2.0")
def subclass_of_a_layer():
    class Scaled(nn.Linear):
        def __init__(self):
            super().__init__(3, 3)
            self.extra = 1.0

        def forward(self, x):
            return super().forward(x) * self.extra

    layer = Scaled()
    yield lambda x: layer(x)
    layer.extra = 2.0


@changed("`opt.param_groups[0]['lr']` changed from 0.1 to 0.01")
def learning_rate_that_is_read():
    w = nn.Parameter(torch.ones(3))
    opt = torch.optim.SGD([w], lr=0.1)
    yield lambda x: x * opt.param_groups[0]["lr"]
    opt.param_groups[0]["lr"] = 0.01


@changed("`opt.param_groups[0]['params'][0]` is another Parameter")
def parameter_of_an_optimizer():
    w = nn.Parameter(torch.ones(3))
    opt = torch.optim.SGD([w], lr=0.1)

    def f(x):
        opt.step()
        return x

    yield f
    opt.param_groups[0]["params"][0] = nn.Parameter(torch.ones(3))


@changed("`opt` is another Adam")
def optimizer_replaced():
    w = nn.Parameter(torch.ones(3))
    opt = torch.optim.Adam([w])

    def f(x):
        opt.step()
        return x

    yield f
    opt = torch.optim.Adam([w])


@changed("`torch.get_default_dtype()` changed from dtype('float32') to dtype('float64')")
def default_dtype():
    yield lambda x: torch.zeros(2, 3)
    torch.set_default_dtype(torch.float64)


@pytest.fixture(autouse=True)
def default_dtype_kept():
    yield
    torch.set_default_dtype(torch.float32)


# --- what does not matter


@unchanged
def unrelated_global():
    yield lambda x: x * SCALE
    globals()["NAME"] = "other"
    globals()["BRAND_NEW"] = 1


@unchanged
def equal_float_rebound():
    scale = float("1.5")
    yield lambda x: x * scale
    scale = float("1.50")


@unchanged
def nan_rebound():
    scale = float("nan")
    yield lambda x: x * scale
    scale = float("nan")


@unchanged
def equal_string_rebound():
    mode = "re" + str(1)
    yield lambda x: x if mode else -x
    mode = "re" + str(1)


@unchanged
def equal_big_integer():
    big = 10**30
    yield lambda x: x * float(big)
    big = 10**29 * 10


@unchanged
def equal_list_rebound():
    global LIST
    yield lambda x: x * sum(LIST)
    LIST = [float("1"), 2.0]


@unchanged
def equal_nest_rebound():
    global TABLE
    yield lambda x: x * TABLE["a"]["b"]
    TABLE = copy.deepcopy(TABLE)


@unchanged
def equal_tuple_of_the_same_tensors():
    w = torch.ones(3)
    ws = (w, w)
    yield lambda x: x * ws[0] + ws[1]
    ws = (w, w)


@unchanged
def equal_array_rebound():
    a = np.array([1.0, math.nan])
    yield lambda x: x * float(a[0])
    a = a.copy()


@unchanged
def element_written_with_an_equal():
    xs = [1.5, 2.5]
    yield lambda x: x * sum(xs)
    xs[0] = float("1.5")


@unchanged
def unread_entry_of_a_dict():
    yield lambda x: x * TABLE["a"]["b"]
    TABLE["other"] = 7
    TABLE["new"] = 8


@unchanged
def unread_attribute():
    cfg = Config()
    yield lambda x: x * cfg.scale
    cfg.unread = 7
    cfg.brand_new = 8


@unchanged
def unread_attribute_of_self():
    holder = Holder(Config())
    yield holder.run
    holder.epoch += 1
    holder.items.append(1)


@unchanged
def attribute_of_another_instance():
    cfg, other = Config(), Config()
    yield lambda x: x * cfg.scale
    other.scale = 9.0


@unchanged
def same_named_method_and_counter():
    class Trainer:
        def __init__(self):
            self.w = nn.Parameter(torch.ones(3))
            self.opt = torch.optim.SGD([self.w], lr=0.1)
            self.step = 0

        def train(self, x):
            self.opt.zero_grad()
            self.opt.step()
            return x * self.w

    trainer = Trainer()
    yield trainer.train
    trainer.step += 1


@unchanged
def counter_in_a_method_that_is_not_called():
    class Trainer:
        def __init__(self):
            self.epoch = 0

        def report(self):
            return self.epoch

        def run(self, x):
            return x * 2

    trainer = Trainer()
    yield trainer.run
    trainer.epoch += 1


@unchanged
def other_class_attribute():
    class Local(Config):
        pass

    cfg = Local()
    yield lambda x: x * cfg.scale
    Local.rate = 0.75
    Local.more = 1


@unchanged
def unread_name_of_a_module():
    config = types.ModuleType("config")
    config.scale, config.other = 1.0, 2.0
    yield lambda x: x * config.scale
    config.other = 3.0


@unchanged
def values_of_a_tensor():
    w = torch.ones(3)
    yield lambda x: x * w
    w.mul_(2)
    w.zero_()


@unchanged
def gradient_of_a_tensor():
    w = torch.ones(3, requires_grad=True)
    yield lambda x: x * w
    (w * 2).sum().backward()


@unchanged
def training_of_the_parameters():
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    yield lambda x: net(x)
    net(X).sum().backward()
    opt.step()


@unchanged
def unread_attribute_of_a_module():
    net = Net()
    yield lambda x: net(x)
    net.seen += 1
    net.brand_new = "x"


@unchanged
def other_module():
    net, other = Net(), Net()
    yield lambda x: net(x)
    other.eval()
    other.scale = 3.0


@unchanged
def state_dict_loaded():
    net, other = Net(), Net()
    yield lambda x: net(x)
    net.load_state_dict(other.state_dict())


@unchanged
def mode_set_to_what_it_was():
    net = Net()
    yield lambda x: net(x)
    net.eval()
    net.train()


@unchanged
def tensor_arguments():
    batch = {"x": X, "y": X}
    yield (lambda batch: batch["x"] + batch["y"]), (batch,)
    batch["x"] = torch.zeros(2, 3)


@unchanged
def tensor_in_a_list_argument():
    xs = [X, X]
    yield (lambda xs: xs[0] + xs[1]), (xs,)
    xs[0] = torch.zeros(2, 3)


@unchanged
def local_names_like_globals():
    def f(x):
        SCALE = 3.0
        return x * SCALE

    yield f
    globals()["SCALE"] = 9.0


@unchanged
def function_that_is_only_defined():
    scale = 1.0

    def never(x):
        return x * scale

    yield lambda x: x * 2
    scale = never


@unchanged
def cell_of_another_function():
    a, b = 1.0, 2.0
    yield lambda x: x * a
    b = a + b


@unchanged
def list_that_is_only_appended_to():
    history = []

    def f(x):
        history.append(0.0)
        return x

    yield f
    history.append(1.0)


@unchanged
def attribute_that_is_only_written():
    cfg = Config()

    def f(x):
        cfg.last = 1.0
        return x

    yield f
    cfg.last = 2.0


@unchanged
def entry_that_is_only_written():
    stats = {"loss": 0.0}

    def f(x):
        stats["loss"] = 1.0
        return x

    yield f
    stats["loss"] = 2.0


@unchanged
def step_of_an_optimizer():
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def f(x):
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        opt.step()
        return loss

    yield f
    f(X)


@unchanged
def library_settings():
    yield lambda x: x * math.pi
    np.set_printoptions(precision=8)


@unchanged
def bound_method_taken_again():
    cfg = Config()
    holder = types.SimpleNamespace(run=cfg.apply)
    yield lambda x: holder.run(x)
    holder.run = cfg.apply


def test_enough_cases():
    assert len(CHANGED) >= 80
    assert len(UNCHANGED) >= 30


@unchanged
def counter_with_the_name_of_a_method_of_an_argument():
    class Trainer:
        def __init__(self):
            self.opt = torch.optim.SGD([nn.Parameter(torch.ones(3))], lr=0.1)
            self.step = 0

        def train(self, x):
            self.opt.step()
            return x

    trainer = Trainer()
    yield Trainer.train, (trainer, X)
    trainer.step += 1


@unchanged
def counter_with_the_name_of_a_method_of_a_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.mean = 0

        def forward(self, x):
            return self.layer(x).mean()

    model = Model()
    yield model
    model.mean += 1


@unchanged
def string_methods_are_no_reflection():
    cfg = Config()

    def use(c, x):
        return x * c.scale * len("a-b".replace("-", "")) * LIST.copy()[0]

    yield lambda x: use(cfg, x)
    cfg.unread += 1


@unchanged
def parameters_registered_again():
    net = nn.Linear(3, 3)
    yield lambda x: net(x)
    bias = net._parameters.pop("bias")
    net.bias = bias


# --- names of tensors


def names_of(fn, *args):
    return Environment(fn, args).names


def test_tensors_are_named_as_the_function_knows_them():
    net, w, ws = Net(), torch.ones(3), [torch.ones(3)]
    names = names_of(lambda x: net(x) + w + ws[0], X)
    assert names[id(w)] == "w"
    assert names[id(ws[0])] == "ws.0"
    assert names[id(net.blocks[1].weight)] == "net.blocks.1.weight"
    assert names[id(net.norm.running_mean)] == "net.norm.running_mean"
    assert names_of(net, X)[id(net.w)] == "w"
    assert names_of(net.forward, X)[id(net.out[0].bias)] == "out.0.bias"


def test_a_tensor_in_an_object_is_named_by_its_path():
    state = types.SimpleNamespace(inner=types.SimpleNamespace(h=torch.ones(3)))
    assert names_of(lambda x: x + state.inner.h, X)[id(state.inner.h)] == "state.inner.h"


# --- what the function writes


def written(fn, *args):
    environment = Environment(fn, args)
    fn(*args)
    return environment, {change.path: change for change in environment.written()}


def test_what_the_function_writes_is_reported_and_can_be_written_again():
    cfg = types.SimpleNamespace(calls=0)

    def f(x):
        cfg.calls += 1
        cfg.last = "now"
        return x

    environment, changes = written(f, X)
    assert not environment.holds()  # it reads the counter
    assert set(changes) == {"cfg.calls", "cfg.last"}
    assert (changes["cfg.calls"].before, changes["cfg.calls"].after) == (0, 1)
    assert changes["cfg.last"].before is MISSING
    changes["cfg.calls"].write(0)
    changes["cfg.last"].write(MISSING)
    assert cfg == types.SimpleNamespace(calls=0)
    assert environment.holds()
    assert environment.written() == []


def test_written_globals_cells_entries_and_lists():
    count, stats, history = 0, {}, []

    def f(x):
        nonlocal count
        global SCALE
        count = 5
        SCALE = 7.0
        stats["n"] = 1
        history.append(2)
        return x

    environment, changes = written(f, X)
    assert {path: change.after for path, change in changes.items()} == {
        "count": 5, "SCALE": 7.0, "stats['n']": 1, "history": [2],
    }  # fmt: skip
    assert environment.holds()  # nothing that it reads
    assert changes["history"].before == []
    changes["history"].write([])
    changes["count"].write(0)
    assert (history, count) == ([], 0)


def test_a_function_that_writes_nothing():
    assert written(lambda x: x * SCALE, X)[1] == {}
    net = Net()
    assert written(net, X)[1] == {}


# --- what no guard can hold


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: x * random.random(), "random.random() at "),
        (lambda x: x * random.gauss(0, 1), "random.gauss() at "),
        (lambda x: x * float(np.random.rand()), "np.random.rand() at "),
        (lambda x: x * float(RNG.normal()), "RNG.normal() at "),
        (lambda x: x * PYTHON_RNG.random(), "PYTHON_RNG.random() at "),
        (lambda x: x * time.time(), "time.time() at "),
        (lambda x: x * now(), "now() at "),
        (lambda x: x * next(NUMBERS), "`NUMBERS` "),
    ],
)
def test_impure_calls_are_listed(fn, message):
    (found,) = Environment(fn, (X,)).impure
    assert found.startswith(message)
    assert "test_environment.py:" in found
    assert "when the function is traced" in found


RNG = np.random.default_rng(0)
PYTHON_RNG = random.Random(0)
NUMBERS = itertools.count()
now = time.perf_counter


def test_pure_calls_are_not_listed():
    assert Environment(lambda x: x * math.sin(1.0) * np.prod([1]) * torch.rand(3), (X,)).impure == []
    assert Environment(Net(), (X,)).impure == []


# --- the environment itself


def test_it_can_be_collected():
    net = Net()
    ref = weakref.ref(net)
    environment = Environment(net, (X,))
    environment.holds()
    net.environment = environment
    del net, environment
    gc.collect()
    assert ref() is None


def test_large_and_deep_state_is_followed_without_recursion():
    first = last = types.SimpleNamespace(scale=1.0, next=None)
    for _ in range(5000):
        last.next = types.SimpleNamespace(scale=1.0, next=None)
        last = last.next

    def f(x):
        node = first
        while node is not None:
            x = x * node.scale
            node = node.next
        return x

    environment = Environment(f, (X,))
    assert environment.holds()
    last.scale = 2.0
    assert not environment.holds()


def test_user_code_is_not_run():
    class Careful:
        def __init__(self):
            self.scale = 1.0

        def __eq__(self, other):
            raise AssertionError("compared")

        __hash__ = object.__hash__

        @property
        def value(self):
            raise AssertionError("evaluated")

        def __getattr__(self, name):
            raise AssertionError(name)

        def __len__(self):
            raise AssertionError("measured")

    careful, boxed = Careful(), [Careful()]
    environment = Environment(lambda x: x * careful.value * boxed[0].scale, (X,))
    assert environment.holds()
    boxed[0] = Careful()
    assert not environment.holds()
    assert environment.broken() == ["`boxed[0]` is another Careful"]


def test_unusual_callables():
    for fn in (len, print, torch.add, functools.partial(torch.add, X), operator.itemgetter(0), Config, np.add):
        with contextlib.suppress(TypeError):
            assert Environment(fn, (X,)).holds()
