"""What can be compiled: functions, methods, callables, modules, decorators, closures, recursion."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from dataclasses import dataclass

import eager as torch
from eager import nn
from tests.scenarios.harness import attempt, program

X = torch.tensor([1.0, 2.0, 3.0])


@program
def name_docstring_and_signature_are_kept(compile):
    def scaled(x, factor: float = 2.0, *rest, shift=0, **options):
        """Scales."""
        return x * factor + shift + sum(rest) + options.get("more", 0)

    f = compile(scaled)
    shown = f.__name__, f.__qualname__, f.__doc__, f.__module__, str(inspect.signature(f))
    return shown, f(X), f(X, 3.0), f(X, 1.0, 2, 3, shift=4, more=5), f(X, shift=1, factor=2.0)


@program
def wrong_calls_raise_what_python_raises(compile):
    f = compile(lambda x, *, k: x * k)
    return [attempt(f), attempt(f, X), attempt(f, X, 2), attempt(f, X, k=2, j=3), attempt(f, X, k=2)]


@program
def varargs_of_changing_number(compile):
    f = compile(lambda *xs, **named: sum(xs) + sum(named.values()))
    return f(X), f(X, X), f(X, X, X), f(X, a=X), f(X, b=X, a=X * 2), f(X, a=X * 2, b=X), f(X)


@program
def order_of_keyword_arguments_counts(compile):
    f = compile(lambda **named: (list(named), torch.stack(list(named.values()))))
    return f(a=X, b=X * 2), f(b=X * 2, a=X), f(a=X, b=X * 2)


@program
def methods_by_decorator(compile):
    class Counter:
        def __init__(self, scale):
            self.scale, self.calls = scale, 0

        @compile
        def __call__(self, x):
            self.calls += 1
            return x * self.scale + self.calls

    a, b = Counter(2.0), Counter(3.0)
    found = [a(X), b(X), a(X), b(X), a.calls, b.calls]
    a.scale = torch.tensor(10.0)
    return [*found, a(X), b(X), a.calls]


@program
def static_and_class_methods_and_properties(compile):
    class Tools:
        factor = 2.0

        @staticmethod
        @compile
        def double(x):
            return x * 2

        @classmethod
        @compile
        def scaled(cls, x):
            return x * cls.factor

        @property
        @compile
        def total(self):
            return self.data.sum() * self.factor

    class Larger(Tools):
        factor = 5.0

    tools, larger = Tools(), Larger()
    tools.data, larger.data = X, X + 1
    found = [Tools.double(X), tools.double(X), Tools.scaled(X), Larger.scaled(X), tools.total, larger.total]
    Tools.factor = 4.0
    return [*found, Tools.scaled(X), Larger.scaled(X), tools.total, larger.total]


@program
def bound_methods(compile):
    class Box:
        def __init__(self, w):
            self.w = w

        def apply(self, x):
            return x @ self.w

    a, b = Box(torch.eye(3)), Box(torch.ones(3, 3))
    f, g = compile(a.apply), compile(b.apply)
    found = [f(X), g(X)]
    a.w = torch.full((3, 3), 2.0)
    return [*found, f(X), g(X), f.__name__, f.__self__ is a]


@program
def methods_decorated_in_subclasses(compile):
    class Base:
        bias = 1.0

        @compile
        def forward(self, x):
            return self.inner(x) + self.bias

        def inner(self, x):
            return x

    class Derived(Base):
        bias = 2.0

        def inner(self, x):
            return super().inner(x) * 3

    base, derived = Base(), Derived()
    found = [base.forward(X), derived.forward(X)]
    Derived.inner = lambda self, x: x * 7
    return [*found, base.forward(X), derived.forward(X)]


@program
def callable_objects_and_builtins(compile):
    @dataclass
    class Affine:
        scale: float
        shift: float

        def __call__(self, x):
            return x * self.scale + self.shift

    affine = Affine(2.0, 1.0)
    f, g, h = compile(affine), compile(operator.add), compile(torch.tanh)
    found = [f(X), g(X, X), h(X)]
    affine.shift = 5.0
    return [*found, f(X), g(X, 1), h(X * 2)]


@program
def partials_of_partials(compile):
    def f(a, b, c=0, d=0):
        return a * 1000 + b * 100 + c * 10 + d

    g = compile(functools.partial(functools.partial(f, X, c=3), d=4))
    return g(X), g(X + 1), g(X, c=7), attempt(g, X, X, 3, c=3)


@program
def closures_made_at_each_call(compile):
    def outer(k):
        return compile(lambda x: x * k)

    return [outer(k)(X) for k in (1.0, 2.0, 3.0)], [f(X) for f in [outer(4.0)] * 3]


@program
def a_closure_whose_cell_is_rebound(compile):
    k = 1.0

    @compile
    def f(x):
        return x * k

    found = [f(X)]
    for value in (2.0, 3, torch.tensor(4.0), torch.tensor(5.0), 6.0):
        k = value
        found.append(f(X))
    return found


@program
def recursion(compile):
    def power(x, n):
        return x if n == 1 else x * f(x, n - 1)

    f = compile(power)
    return f(X, 1), f(X, 3), f(X, 2)


@program
def mutual_recursion_through_globals_of_a_class(compile):
    class Parity:
        @compile
        def even(self, x, n):
            return x if n == 0 else self.odd(x + 1, n - 1)

        @compile
        def odd(self, x, n):
            return -x if n == 0 else self.even(x * 2, n - 1)

    p = Parity()
    return [p.even(X, n) for n in range(4)], [p.odd(X, n) for n in range(4)]


@program
def decorators_around_and_inside(compile):
    calls = []

    def noted(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            calls.append(fn.__name__)
            return fn(*args, **kwargs)

        return wrapper

    def plus_one(fn):
        @functools.wraps(fn)
        def wrapper(x):
            return fn(x) + 1

        return wrapper

    @noted
    @compile
    @plus_one
    def f(x):
        return x * 2

    return f(X), f(X), f(X + 1), calls, f.__name__


@program
def compile_inside_compile(compile):
    inner = compile(lambda x, k: (x * k).sum())

    @compile
    def outer(x):
        return inner(x, 2) + inner(x, 3), compile(torch.exp)(x)

    x = X.clone().requires_grad_()
    total, e = outer(x)
    (total + e.sum()).backward()
    return total, e, x.grad, inner(x, 2), outer(x)


@program
def two_functions_that_share_state(compile):
    state = {"n": 0, "last": torch.zeros(3)}

    @compile
    def put(x):
        state["last"] = state["last"] + x
        state["n"] += 1

    @compile
    def get(x):
        return state["last"] * x, state["n"]

    found = []
    for i in range(4):
        put(X + i)
        found.append(get(X))
    state["last"] = torch.zeros(3)
    return found, get(X), state


@program
def generators_made_and_consumed_inside(compile):
    def rows(x):
        for row in x:
            yield row * 2

    f = compile(lambda x: torch.stack(list(rows(x))).sum() + sum(r.max() for r in rows(x)))
    return f(torch.arange(6.0).reshape(2, 3)), f(torch.arange(6.0).reshape(3, 2))


@program
def a_generator_given_as_an_argument(compile):
    f = compile(lambda xs: sum(x * 2 for x in xs))
    return f(X + i for i in range(2)), f(X + i for i in range(3)), f(iter([X])), f(map(torch.tanh, [X, X]))


@program
def functions_given_as_arguments(compile):
    f = compile(lambda fn, x: fn(x) * 2)
    made = [f(lambda x, i=i: x + i, X) for i in (1, 2)]
    return f(torch.sin, X), f(torch.cos, X), f(lambda x: x + 1, X), f(nn.ReLU(), -X), made


@program
def context_managers_and_decorators_of_eager(compile):
    @contextlib.contextmanager
    def doubled(box):
        box.append(2.0)
        yield box[-1]
        box.pop()

    @compile
    @torch.no_grad()
    def f(x):
        with doubled([]) as k, torch.enable_grad():
            y = x * k
        return y, x * 3

    return f(X.clone().requires_grad_()), f(X)
