"""Attributes of objects, classes and modules of the user that change.

A case is a generator: it yields a function, or a function and its arguments, and then changes something.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import operator
import types
import weakref

import eager as torch
from tests.capture.changes import Config, Holder, X, changed
from tests.capture.changes.variables import helper, helper_of_global


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
    yield  # or cfg would be gone


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


class Doubling(Config):
    @property
    def twice(self):
        return self.scale * 2

    def times(self, x):
        return x * 3


class Tripling(Config):
    @property
    def twice(self):
        return self.scale * 3

    def times(self, x):
        return x * 4


class Plain(Config):
    pass


@changed("`cfg.__class__` is another class")
def class_of_an_object_with_a_property():
    cfg = Doubling()
    yield lambda x: x * cfg.twice
    cfg.__class__ = Plain


@changed("`cfg.__class__` is another class")
def class_of_an_object_with_a_method():
    cfg = Doubling()
    yield lambda x: cfg.times(x)
    cfg.__class__ = Tripling


class Missing:
    def __init__(self):
        self.table = {"scale": 2.0}

    def __getattr__(self, name):
        try:
            return self.table[name]
        except KeyError:
            raise AttributeError(name) from None


@changed("`missing.scale` was added")
def attribute_in_place_of_a_missing_one():
    missing = Missing()
    yield lambda x: x * missing.scale
    missing.scale = 3.0


@changed("`missing.scale` was added")
def attribute_of_a_class_in_place_of_a_missing_one():
    class Own(Missing):
        pass

    missing = Own()
    yield lambda x: x * missing.scale
    Own.scale = 3.0


@changed("`missing.scale` was added")
def attribute_in_place_of_a_missing_one_of_what_is_handed_on():
    missing = Missing()
    scaled = lambda of, x: x * of.scale
    yield lambda x: scaled(missing, x)
    missing.scale = 3.0


@changed("`made.scale` was added")
def attribute_of_a_class_without_a_module():
    names = {}
    exec("class Made:\n    scale = 2.0\n    def times(self, x):\n        return x * self.scale", names)
    made = names["Made"]()
    yield lambda x: made.times(x)
    made.scale = 3.0
