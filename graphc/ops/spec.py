"""What an op is: one declaration, from which every interpreter derives what it needs.

`op(...)` makes an `Op` and enters it in the registry `OPS`. The declaration form is described in
docs/extending.md; the fields are documented on `Op`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, ParamSpec, final

import numpy as np

from graphc.errors import RegistryError
from graphc.ops.aval import Aval
from graphc.ops.dtypes import UNSIGNED, is_inexact
from graphc.ops.labels import Dims
from graphc.ops.lens import Lens
from graphc.ops.parts import Parts
from graphc.ops.rounding import Rounding

P = ParamSpec("P")


MANY = 2**12  # elements, from which vectors pay for a question about all of them


class Trait(enum.Flag):
    """Algebraic facts about an op. Passes ask for these, never for names."""

    NONE = 0
    COMMUTATIVE = enum.auto()  # f(x, y) = f(y, x), bit for bit
    LINEAR = enum.auto()  # linear in its first argument
    BILINEAR = enum.auto()  # linear in each of its first two arguments
    IDEMPOTENT = enum.auto()  # f(f(x)) = f(x), bit for bit
    EVEN = enum.auto()  # f(-x) = f(x), bit for bit but for nan
    VIEW = enum.auto()  # the eager result may share memory with the first argument
    HOLOMORPHIC = enum.auto()  # the gradient rules are written for reals: of complex numbers they are conjugated around
    ORDERS = enum.auto()  # needs an order, which complex numbers do not have: they are refused
    BROADCASTS = enum.auto()  # not pointwise, yet batch dimensions broadcast: gradients are summed back
    IMPURE = enum.auto()  # never merged, folded or dropped
    STRUCTURED = enum.auto()  # runs graphs that are among its parameters, or takes apart what such an op returns
    SURROGATE = enum.auto()  # its gradient rule is not the derivative of its value, on purpose
    PADS = enum.auto()  # a sum of products, some perhaps with zeros that stand for nothing: 0 * inf may be among them
    CONTRACTS = enum.auto()  # sums of products, which devices make of 16-bit operands with wider sums by themselves
    MOVES = enum.auto()  # computes nothing: up to its sign, each element is one of an operand's, or 0
    LITERAL = enum.auto()  # holds numbers among its parameters
    COMMUNICATES = enum.auto()  # waits for other processes, which do the same in the same order
    BITS = enum.auto()  # what it computes depends on how its operands are represented: on the sign of nan, on bytes
    IDENTITY = enum.auto()  # the value of its operand, bit for bit: only memory and gradients tell them apart
    BRANCHES = enum.auto()  # of `MANY` floats, XLA's program asks first which way to take: it is no part of a loop


class Rule(NamedTuple):
    """A shape-and-dtype rule that several ops share.

    infer(op, avals, params) returns the result's Aval (of an op with several: a tuple of them) or raises PyTorch's
    error; `avals` are already promoted.
    promote: "" leaves operand dtypes alone, "common" promotes them, "float" also turns integers into
    floats, "number" turns bools into integers.
    accepts(op, dtypes) raises for operand dtypes, as given, that PyTorch refuses.
    first: the index of the first operand that takes part in promotion (`where` leaves its condition alone).
    holomorphic: the trait HOLOMORPHIC, for every op with this rule.
    scalars: which of the promoted operands may be Python scalars: "any" of them, "one" of the two, the "last", or none.
    """

    infer: Callable[[Op, list[Any], Mapping[str, Any]], Any]
    promote: str = ""
    first: int = 0
    pointwise: bool = False
    accepts: Callable[[Op, list[np.dtype]], None] | None = None
    holomorphic: bool = False
    scalars: str = "any"


class Vjp(NamedTuple):
    """The gradient rule of one argument, and the names it asks for (`g` the cotangent, `r` the result,
    an argument, `<argument>_shape`, `<argument>_dtype`, or a parameter).

    Of an op with results `q` and `r`: `g_q` and `g_r` in place of `g`, which are None for a result that no gradient
    has come from, and `r_q` and `r_r` in place of `r`.
    """

    fn: Callable[..., Any]
    names: tuple[str, ...]


class Kink(NamedTuple):
    """A point where the derivative jumps or is infinite, and the subgradients declared there (PyTorch's).

    alike: f(*operands), where the same is declared: `at` is one of infinitely many points, as poles are
    """

    at: tuple[float, ...]
    grads: tuple[float, ...]
    alike: Callable[..., np.ndarray] | None = None

    def holds(self, operands: Sequence[np.ndarray]) -> np.ndarray:
        """At which elements of `operands`, of one shape, this is declared."""
        if self.alike is not None:
            return self.alike(*operands)
        return np.logical_and.reduce([a == at for a, at in zip(operands, self.at, strict=True)])


AUTOCAST = ("", "lower", "float32", "promote")  # what an op may declare

LoneTerm = Callable[[list[Aval], Aval, Mapping[str, Any], Callable[[int, float], bool]], bool]


def either_zero(result: np.ndarray, like: np.ndarray) -> np.ndarray:
    """`Op.nearest` of extremes: of 0 and -0, which are equal, either may be the largest."""
    return np.where((result == 0) & (like == 0), like, result)


@final
class Op:
    """One operation: arrays are positional, everything else is a keyword parameter.

    name      as in PyTorch where PyTorch has it
    args      names of the array arguments; a name "*xs" takes the rest
    results   names of the results, of an op with several: its kernel, its shape rule and its reference return tuples,
              and in a graph `item` takes one out. None where its parameters say how many there are (`several`), as
              those of control flow do, whose gradients graphc.autodiff knows
    params    keyword parameters with their defaults
    impl      the kernel: a name that NumPy and jax.numpy share ("special.erf": SciPy's and JAX's),
              or `f(xp, *arrays, **params)`
    numpy     the NumPy kernel, where it is not `impl`: a name or `f(*arrays, **params)`
    rule      shape-and-dtype rule
    vjp       gradient rule of each differentiable argument, in the op language
    traits    algebraic facts
    domain    (low, high) of each argument for samples, where the op is smooth
    kinks     subgradient conventions
    ref       independent reference: a dotted name, or a function of arrays and parameters (graphc.ops.references)
    slopes    independent gradients: by argument `f(g, *arrays, **params)`, where differences of `ref` tell nothing, at
              kinks, ties and limits
    samples   inputs for the derived tests of ops with parameters (graphc.ops.samples)
    flops     (avals, result aval, params) -> number of scalar operations
    rounding  how far off a correct kernel may be (graphc.ops.rounding)
    lone_term  (avals, result aval, params, is_zero) -> whether results are sums of one term and +0, that is, the term
              with +0 for -0. is_zero(k, sign): whether operand k is zero of this sign in each place
    lens      of an op that is a step to a view in graphs: how it lies in memory, and is written (graphc.ops.lens)
    check     validity test of input values, where only the data decides (zero divisors, indices)
    cpu_name  PyTorch's name, in messages, of the kernel that refuses a dtype, unless it is <name>_cpu
    label     name of the tape node, without the "Backward0" that is added unless it has one
    overloads  PyTorch's names of the nodes where an operand is a Python scalar and that is a function of its own, of
              one operand: {"sf": name} if it is the first operand, {"fs": name} the second
    naming    `f(shapes)`, with the shapes of the operands: the whole name of the node, where PyTorch has several
    definition  `f(F, *operands, **params)` in the op language: what stands for this op in compiled programs: only the
              eager engine has one kernel for it. An op with gradient rules that is no view stays `whole` in graphs
              until their gradients are made
    lifting   of an op that is linear in each operand: `f(N, *forms, **params)`, what it is as a sum of products, in the
              language of graphc.normal.form
    parts     which part of the result needs which parts of the operands (graphc.ops.parts); pointwise ops need not say
    dims      which dims of operands and results run together, where neither `lifting` nor `parts` says it
              (graphc.ops.labels)
    claims    `f(params, result)`, the facts that hold of result number `result` (0 where there is one), as tuples
              (graphc.ops.assumptions)
    band      of an op that makes matrices: `f(shape, params, *bands of the operands)`, how many diagonals below and
              above the main one may hold anything but zeros; None for operands that are no matrices
    inverts   whether it is the inverse of a matrix, unless its parameter `checked` lets it refuse one
    symmetric  whether it makes symmetric matrices of such
    image     (least, largest) that results are: at most such a range; or `f(params, *ranges of the operands)`, which
              is that
    passes    whether the result is the first operand as it is
    autocast  what `torch.autocast` does with its operands (eager.amp.lists): "lower" casts them to its dtype, "float32"
              to that, "promote" to one of the two; "" leaves them as they are
    nearest   where several results are right, as the sign of an eigenvector is free: `f(result, like)`, the one nearest
              to `like`
    """

    __slots__ = (
        "args", "autocast", "band", "bilinear", "check", "claims", "commutative", "cpu_name", "definition", "dims",
        "doc", "domain", "flops", "holomorphic", "image", "impl", "impure", "inverts", "kernel", "kinks", "label",
        "lens", "lifting", "lone_term", "moves", "name", "naming", "nearest", "numpy", "overloads", "params", "parts",
        "passes", "pointwise", "ref", "results", "rounding", "rule", "samples", "several", "slopes", "structured",
        "symmetric", "traits", "variadic", "view", "vjp", "whole",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        args: str,
        *,
        impl: str | Callable[..., Any],
        rule: Rule,
        results: str | None = "",
        params: Mapping[str, Any] | None = None,
        numpy: str | Callable[..., Any] | None = None,
        vjp: Mapping[str, Callable[..., Any]] | None = None,
        traits: Trait = Trait.NONE,
        domain: Any = None,
        kinks: tuple[Kink, ...] = (),
        ref: str | Callable[..., Any] | None = None,
        slopes: Mapping[str, Callable[..., Any]] | None = None,
        samples: tuple[Any, ...] = (),
        flops: Callable[[list[Aval], Aval, Mapping[str, Any]], int] | None = None,
        rounding: Rounding | None = None,
        lone_term: LoneTerm | None = None,
        lens: Lens | None = None,
        check: Check | None = None,
        cpu_name: str | None = None,
        label: str | None = None,
        overloads: Mapping[str, str] | None = None,
        naming: Callable[[list[tuple[int, ...]]], str] | None = None,
        definition: Callable[..., Any] | None = None,
        lifting: Callable[..., Any] | None = None,
        parts: Parts | None = None,
        dims: Dims | None = None,
        band: Callable[..., tuple[int, ...]] | None = None,
        claims: Callable[[Mapping[str, Any], int], Collection[tuple[Any, ...]]] | None = None,
        inverts: bool = False,
        symmetric: bool = False,
        image: tuple[float, float] | Callable[..., tuple[float, float]] | None = None,
        passes: bool = False,
        nearest: Callable[[Any, Any], Any] | None = None,
        autocast: str = "",
        doc: str = "",
    ):
        if autocast not in AUTOCAST:
            raise RegistryError(f"{name}: autocast={autocast!r}; it may be one of {AUTOCAST}")
        self.name = name
        self.args = tuple(args.replace("*", "").split())
        self.variadic = "*" in args
        self.results = tuple(results.split()) if results else ()
        self.several = results is None or bool(self.results)
        self.params = MappingProxyType(dict(params or {}))
        self.impl = impl
        self.numpy = numpy
        self.rule = rule
        self.vjp = MappingProxyType({arg: self._vjp(arg, fn) for arg, fn in (vjp or {}).items()})
        self.traits = traits
        # the traits that inner loops ask for, as plain booleans: testing a Flag costs 2 us
        self.commutative = bool(traits & Trait.COMMUTATIVE)
        self.impure = bool(traits & Trait.IMPURE)
        self.view = bool(traits & Trait.VIEW)
        self.moves = bool(traits & Trait.MOVES)
        self.bilinear = bool(traits & Trait.BILINEAR)
        self.structured = bool(traits & Trait.STRUCTURED)
        self.pointwise = rule.pointwise
        self.holomorphic = rule.holomorphic or bool(traits & Trait.HOLOMORPHIC)
        self.domain = domain
        self.kinks = kinks
        self.ref = ref
        self.slopes = MappingProxyType(dict(slopes or {}))
        self.samples = samples
        self.flops = flops
        self.rounding = (rounding or Rounding()).completed(self.moves, self.pointwise)
        self.lone_term = lone_term
        self.lens = lens
        self.check = check
        self.cpu_name = cpu_name or f"{name.removeprefix('special_')}_cpu"
        self.label = label or "".join(part.capitalize() for part in name.split("_"))
        self.naming = naming
        self.overloads = MappingProxyType(dict(overloads or {}))
        self.definition = definition
        self.whole = definition is None or (bool(self.vjp) and not self.view)
        self.lifting = lifting
        self.parts = parts
        self.dims = dims
        self.band = band
        self.claims = claims
        self.inverts = inverts
        self.symmetric = symmetric
        self.image = image
        self.passes = passes
        self.nearest = nearest
        self.autocast = autocast
        self.doc = doc
        self.kernel = resolve_numpy(numpy if numpy is not None else impl, shared=numpy is None)

    def image_of(self, params: Mapping[str, Any], *ranges: tuple[float, float]) -> tuple[float, float] | None:
        """(least, largest) that results may be for operands in these ranges, as far as that is declared."""
        return self.image(params, *ranges) if callable(self.image) else self.image

    def has_lone_terms(
        self, avals: list[Aval], result: Aval, params: Mapping[str, Any], is_zero: Callable[[int, float], bool]
    ) -> bool:
        """Whether results are sums of one term and +0, which is the term with +0 for -0. As `lone_term`."""
        if self.several or not is_inexact(result.dtype):
            return False
        if self.lone_term is not None:
            return self.lone_term(avals, result, params, is_zero)
        if not self.traits & Trait.CONTRACTS or self.flops is None:
            return False
        return self.flops(avals, result, params) <= len(avals) * result.size

    def _vjp(self, arg: str, fn: Callable[..., Any]) -> Vjp:
        code = fn.__code__
        names = code.co_varnames[1 : code.co_argcount]  # the first parameter is F
        known = {*self.args, *self.params}
        known |= {f"{what}_{result}" for what in "gr" for result in self.results} or {"g", "r"}
        known |= {f"{a}_{what}" for a in self.args for what in ("shape", "dtype")}
        if self.variadic:
            known.add("position")  # which of the variadic operands the gradient is for
        if arg not in self.args:
            raise RegistryError(f"{self.name}: vjp for '{arg}', which is not an argument (arguments: {self.args})")
        if unknown := [n for n in names if n not in known]:
            raise RegistryError(f"{self.name}: vjp of '{arg}' asks for {unknown}; it may ask for {sorted(known)}")
        return Vjp(fn, names)

    @property
    def differentiable(self) -> bool:
        return bool(self.vjp)

    @property
    def node_name(self) -> str:
        """The name of the op's tape nodes, as PyTorch prints it."""
        return self.label if "Backward" in self.label else f"{self.label}Backward0"

    def arg_of(self, index: int) -> str:
        """The argument name that operand number `index` belongs to."""
        return self.args[index] if index < len(self.args) else self.args[-1]

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self):
        return _lookup, (self.name,)


class Check(NamedTuple):
    """A run-time validity test: unless `ok(xp, *arrays, **params)`, a boolean scalar, `error(message)` is raised.

    The message may depend on the parameters.

    bounds  of a test that integers lie in ranges: f(*arrays, **params) gives (array, low, high) for each, high excluded
    whole_only  whether the test holds for all results but integers and bools
    detail  f(*arrays, **params): what is wrong where, for the message, where the arrays are at hand
    place   the same, for a message with "{place}" in it
    about   the numbers of the operands that decide the test: it holds if it does with None in place of the others
    asked   the parameter that says whether there is a test, if one does
    """

    ok: Callable[..., Any]
    error: type[Exception]
    message: str | Callable[[Mapping[str, Any]], str]
    bounds: Callable[..., Iterable[tuple[Any, int, int]]] | None = None
    whole_only: bool = False
    detail: Callable[..., str] | None = None
    place: Callable[..., str] | None = None
    about: Collection[int] | None = None
    asked: str = ""

    def failure(
        self, params: Mapping[str, Any], where: str | None = None, arrays: Sequence[np.ndarray] | None = None
    ) -> Exception:
        """The error for operands `arrays`, which ends with the user's line if that is known."""
        message = self.message if isinstance(self.message, str) else self.message(params)
        if self.place is not None:
            message = message.format(place="" if arrays is None else self.place(*arrays, **params))
        if self.detail is not None and arrays is not None:
            message = f"{message}: {self.detail(*arrays, **params)}"
        return self.error(message + (f" (at {where})" if where else ""))


_least: Any = np.minimum.reduce  # the methods of arrays take longer
_most: Any = np.maximum.reduce


def bounded(bounds: Callable[..., Iterable[tuple[Any, int, int]]], error: type[Exception], message: str) -> Check:
    """The test that integers lie in ranges; see `Check`."""

    def ok(xp: Any, *arrays: Any, **params: Any) -> Any:
        found: Any = True
        for array, low, high in bounds(*arrays, **params):
            if xp is np:  # no arrays as large, and no call to make them
                # seen as unsigned, a negative number is a large one: mostly one test does for both ends
                inside = not array.size or _most(array.view(UNSIGNED[array.dtype.itemsize]), None) < high
                inside = inside or (low < 0 and _least(array, None) >= low and _most(array, None) < high)
            else:
                inside = xp.all((array >= low) & (array < high))
            found = found & inside
        return found

    return Check(ok, error, message, bounds)


class Registry(Mapping[str, Op]):
    """All ops by name. Subscribers hear of every op, past and future."""

    def __init__(self):
        self._ops: dict[str, Op] = {}
        self._subscribers: list[Callable[[Op], None]] = []

    def add(self, new: Op) -> Op:
        if new.name in self._ops:
            raise RegistryError(f"op '{new.name}' is declared twice")
        self._ops[new.name] = new
        for hear in self._subscribers:
            hear(new)
        return new

    def remove(self, name: str) -> None:
        """Forget an op (for tests that declare their own)."""
        del self._ops[name]

    def subscribe(self, hear: Callable[[Op], None]) -> None:
        self._subscribers.append(hear)
        for known in self._ops.values():
            hear(known)

    def __getitem__(self, name: str) -> Op:
        return self._ops[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)


OPS = Registry()


def _taking_what(made: Callable[P, Op]) -> Callable[[Callable[..., Op]], Callable[P, Op]]:
    """Decorator: for type checkers, the function takes what `made` takes."""
    return lambda function: function


@_taking_what(Op)
def op(name: str, args: str, **declaration: Any) -> Op:
    """Declare an op and register it. See `Op` for the fields.

    >>> from graphc.ops.rules import pointwise_float
    >>> cube_root = op("cube_root_doc", "x", impl="cbrt", rule=pointwise_float,
    ...                vjp=dict(x=lambda F, g, r: g / (3 * r * r)), domain=(0.5, 4.0), ref="scipy.special.cbrt")
    >>> cube_root.kernel(np.array([8.0]))
    array([2.])
    >>> OPS.remove("cube_root_doc")
    """
    return OPS.add(Op(name, args, **declaration))


def _lookup(name: str) -> Op:
    return OPS[name]


def resolve_numpy(impl: str | Callable[..., Any], *, shared: bool) -> Callable[..., Any]:
    """The NumPy kernel that `impl` names. A function shared by the backends gets NumPy as its first argument."""
    if isinstance(impl, str):
        if impl.startswith("special."):
            return _lazy_special(impl.removeprefix("special."))
        return getattr(np, impl)
    if not shared:
        return impl

    def kernel(*arrays: Any, **params: Any) -> Any:
        return impl(np, *arrays, **params)

    return kernel


def _lazy_special(name: str) -> Callable[..., Any]:
    """A function of scipy.special that imports SciPy at its first call: `import eager` stays light."""
    resolved: list[Callable[..., Any]] = []

    def kernel(*arrays: Any) -> Any:
        if not resolved:
            import scipy.special

            resolved.append(getattr(scipy.special, name))
        return resolved[0](*arrays)

    return kernel
