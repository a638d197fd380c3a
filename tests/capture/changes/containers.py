"""Elements of containers and ndarrays that change.

A case is a generator: it yields a function, or a function and its arguments, and then changes something.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import sys
import types

import numpy as np

from eager import nn
from tests.capture.changes import Config, X, changed

SCALE = 2.0
LIST = [1.0, 2.0]


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
