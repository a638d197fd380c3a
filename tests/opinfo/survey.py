"""PyTorch's own op tests, put to `eager` and to compiled programs.

PyTorch ships, for each op, a generator of sample arguments for every dtype and one of invalid arguments
(`torch.testing._internal`). Each sample is run by PyTorch, by `eager`, and by `graphc.compile`:

    python -m tests.opinfo.survey [--aspect value gradient ...] [--only PATTERN] [--json FILE]

prints the ops whose results part, the sample and the difference.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import SEED
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

import eager
import graphc
from graphc.errors import CaptureError
from tests.opinfo import translate

# PyTorch's test code forbids to set its flags in this process, which other tests do
torch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True


class Finding(NamedTuple):
    """One difference from PyTorch."""

    op: str
    aspect: str
    dtype: str
    sample: str
    difference: str


# PyTorch's own defaults of assert_close, a little widened: (relative, absolute)
BOUNDS = {
    "float16": (4e-3, 1e-3),
    "bfloat16": (3.2e-2, 1e-2),
    "float32": (1e-5, 2e-5),
    "complex64": (1e-5, 2e-5),
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
}


def kind(given: Any) -> str:
    return str(given.dtype).removeprefix("torch.").removeprefix("eager.")


def difference(expected: Any, got: Any, values: bool = True) -> str:
    """What parts `got` from `expected`; empty if nothing does."""
    if isinstance(expected, (torch.Tensor, eager.Tensor)):
        if not isinstance(got, eager.Tensor):
            return f"a Tensor became {type(got).__name__}"
        if tuple(expected.shape) != tuple(got.shape):
            return f"shape {tuple(expected.shape)} became {tuple(got.shape)}"
        if kind(expected) == "complex32":  # which eager does not have
            return ""
        if kind(expected) != kind(got):
            return f"dtype {kind(expected)} became {kind(got)}"
        if not values:
            return ""
        rtol, atol = BOUNDS.get(kind(expected), (0, 0))
        a, b = translate.array(expected), translate.array(got)
        with np.errstate(all="ignore"):
            same = np.isclose(b, a, rtol, atol, equal_nan=True) if a.dtype.kind in "fc" else a == b
            if a.dtype.kind == "c":  # infinities in one part only
                same |= np.isclose(a.real, b.real, rtol, atol, equal_nan=True) & np.isclose(
                    a.imag, b.imag, rtol, atol, equal_nan=True
                )
        if np.all(same):
            return ""
        where = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0]) if a.ndim else ()
        return f"{int(np.sum(~same))} of {a.size} elements, the first at {where}: {a[where]} became {b[where]}"
    if isinstance(expected, torch.dtype):
        return "" if str(expected) == str(got) else f"{expected} became {got}"
    if isinstance(expected, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            return f"{type(expected).__name__} of {len(expected)} became {type(got).__name__}"
        fields = getattr(expected, "_fields", None) or [
            n for n in dir(type(expected)) if type(getattr(type(expected), n)).__name__ == "member_descriptor"
        ]
        if missing := [n for n in fields if not hasattr(got, n)]:
            return f"the result has no {missing}"
        found = (difference(a, b, values) for a, b in zip(expected, got, strict=True))
        return next((text for text in found if text), "")
    if isinstance(expected, float):
        close = np.isclose(got, expected, 1e-5, 1e-6, equal_nan=True) if isinstance(got, float) else False
        return "" if close else f"{expected} became {got}"
    if expected is None or isinstance(expected, (bool, int, complex, str)):
        return "" if expected == got and type(expected) is type(got) else f"{expected!r} became {got!r}"
    return f"unknown result {type(expected).__name__}"


def text(sample: SampleInput) -> str:
    """The sample in a line."""

    def one(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            dense = "" if x.layout != torch.strided or x.is_contiguous() else f" strides {tuple(x.stride())}"
            return f"{kind(x)}{list(x.shape)}{dense}"
        if isinstance(x, (list, tuple)):
            return "[" + ", ".join(map(one, x)) + "]"
        return repr(x)

    words = [one(sample.input), *map(one, sample.args), *(f"{k}={one(v)}" for k, v in sample.kwargs.items())]
    return ", ".join(words)[:300]


def duplicate(x: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor and of the memory that it is a view of."""
    if x.layout != torch.strided or x.is_conj() or x.is_neg() or x._is_zerotensor():
        return x.detach().clone(memory_format=torch.preserve_format).requires_grad_(x.requires_grad)
    memory = x.detach().untyped_storage().clone()
    copy = torch.empty(0, dtype=x.dtype).set_(memory, x.storage_offset(), x.shape, x.stride())
    return copy.requires_grad_(x.requires_grad)


class Case:
    """A sample, as PyTorch's and as eager's arguments, the same arguments at each reading."""

    ours: Any

    def __init__(self, op: OpInfo, sample: SampleInput) -> None:
        self.op, self.sample = op, sample
        self.theirs = op.op
        self.ours = None

    def bind(self) -> None:
        self.ours = translate.function(self.op.op, self.op.name)

    def torch(self) -> tuple[Any, list[torch.Tensor]]:
        """PyTorch's result and the leaves that require grad."""
        given = (self.sample.input, *self.sample.args, self.sample.kwargs)
        args = torch.utils._pytree.tree_map(lambda x: duplicate(x) if isinstance(x, torch.Tensor) else x, given)
        torch.default_generator.manual_seed(0)  # `torch.manual_seed` seeds GPUs, too
        return self.settled(self.theirs(*args[:-1], **args[-1])), _leaves(args, torch.Tensor)

    def eager(self) -> tuple[Any, list[Any]]:
        """The same of eager."""
        args = translate.value((self.sample.input, *self.sample.args, self.sample.kwargs))
        self.bind()
        assert self.ours is not None
        eager.manual_seed(0)
        return self.settled(self.ours(*args[:-1], **args[-1]), ours=True), _leaves(args, eager.Tensor)

    def settled(self, result: Any, ours: bool = False) -> Any:
        """What of the result is well defined: the sample says (factors have a sign or a phase that is free)."""
        process = self.sample.output_process_fn_grad
        if process.__name__ != "<lambda>" or not isinstance(result, (tuple, torch.Tensor, eager.Tensor)):
            return result
        return (translate.function(process, "<lambda>") if ours else process)(result)


def _leaves(tree: Any, kind: type, needs_grad: bool = True) -> list[Any]:
    if isinstance(tree, kind):
        return [tree] if tree.requires_grad or not needs_grad else []
    if isinstance(tree, dict):
        return [x for item in tree.values() for x in _leaves(item, kind, needs_grad)]
    return [x for item in tree for x in _leaves(item, kind, needs_grad)] if isinstance(tree, (list, tuple)) else []


DATA_DEPENDENT = re.compile("needs the values of a traced tensor|depends on the values|shape of the result")
RANDOM = re.compile(r"empty|new_empty")


def run_value(case: Case) -> str:
    warnings.simplefilter("ignore")
    try:
        expected = case.torch()[0]
    except Exception as error:  # PyTorch's refusals are ours
        try:
            case.eager()
        except Exception as own:
            return (
                ""
                if isinstance(own, type(error)) or type(own).__name__ == type(error).__name__
                else (f"{type(error).__name__}({str(error)[:80]}) became {type(own).__name__}({str(own)[:80]})")
            )
        return f"no {type(error).__name__}: {str(error)[:100]}"
    try:
        got = case.eager()[0]
    except translate.Untranslatable:
        return ""
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error)[:200]}"
    text = difference(expected, got, values=not RANDOM.match(case.op.name))
    return "" if text and " elements" in text and as_good(case, expected, got) else text


WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def as_good(case: Case, expected: Any, got: Any, of: Callable[[Any, Any], Any] = lambda result, given: result) -> bool:
    """Whether the result is no farther from PyTorch's own in double precision than PyTorch's is, rounding apart.

    `of(result, arguments)` is what was compared.
    """

    def widen(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x.detach().to(WIDER.get(x.dtype, x.dtype)).requires_grad_(x.requires_grad)
        return WIDER.get(x, x) if isinstance(x, torch.dtype) else x

    args = torch.utils._pytree.tree_map(widen, (case.sample.input, *case.sample.args, case.sample.kwargs))
    torch.manual_seed(0)
    try:
        truth = of(case.settled(case.theirs(*args[:-1], **args[-1])), args)
    except Exception:
        return False
    triples = zip(
        *(
            _leaves([x], kind, False)
            for x, kind in ((truth, torch.Tensor), (expected, torch.Tensor), (got, eager.Tensor))
        ),
        strict=True,
    )
    for exact, theirs, mine in triples:
        if theirs.dtype not in WIDER:
            if difference(theirs, mine):
                return False
            continue
        rtol, atol = BOUNDS[kind(theirs)]
        e, t, m = (translate.array(x) for x in (exact, theirs, mine))
        with np.errstate(all="ignore"):
            error, allowed = np.abs(m - e), np.abs(t - e)
            near = np.isclose(m, e, rtol, atol, equal_nan=True) | (error <= 2 * allowed + atol / 10)
        if not np.all(near):
            return False
    return True


def _cotangents(results: list[torch.Tensor]) -> list[torch.Tensor]:
    rng = np.random.default_rng(1)
    made = []
    for r in results:
        a = rng.standard_normal(tuple(r.shape))
        if r.dtype.is_complex:
            a = a + 1j * rng.standard_normal(tuple(r.shape))
        made.append(torch.as_tensor(a).to(r.dtype))
    return made


def run_gradient(case: Case) -> str:
    warnings.simplefilter("ignore")
    try:
        result, inputs = case.torch()
        outs = [x for x in _leaves([result], torch.Tensor) if x.requires_grad]
        if not outs or not inputs:
            return ""
        cotangents = _cotangents(outs)
        expected = torch.autograd.grad(outs, inputs, cotangents, allow_unused=True)
    except Exception:
        return ""
    try:
        result, inputs = case.eager()
        outs = [x for x in _leaves([result], eager.Tensor) if x.requires_grad]
        if len(outs) != len(cotangents):
            return f"{len(cotangents)} differentiable results became {len(outs)}"
        got = eager.autograd.grad(outs, inputs, [translate.tensor(c) for c in cotangents], allow_unused=True)
    except translate.Untranslatable:
        return ""
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error)[:200]}"
    text = difference(tuple(expected), tuple(got))
    return "" if text and " elements" in text and as_good(case, expected, got, _exact_gradients(cotangents)) else text


def _exact_gradients(cotangents: list[torch.Tensor]) -> Callable[[Any, Any], Any]:
    """What turns a result in double precision into gradients."""

    def gradients(result: Any, given: Any) -> Any:
        outs = [x for x in _leaves([result], torch.Tensor) if x.requires_grad]
        wide = [c.to(o.dtype) for c, o in zip(cotangents, outs, strict=True)]
        return torch.autograd.grad(outs, _leaves(given, torch.Tensor), wide, allow_unused=True)

    return gradients


def _compiled_function(case: Case, shape_of: Any) -> Any:
    def run(*tensors: Any) -> Any:
        rest = iter(tensors)

        def fill(x: Any) -> Any:
            if isinstance(x, eager.Tensor):
                return next(rest)
            if isinstance(x, dict):
                return {k: fill(v) for k, v in x.items()}
            if isinstance(x, (list, tuple)):
                return type(x)(fill(v) for v in x)
            return x

        filled = fill(shape_of)
        return case.ours(*filled[:-1], **filled[-1])

    return run


def run_compiled(case: Case) -> str:
    """Values, and gradients, of the compiled call against eager's."""
    warnings.simplefilter("ignore")
    try:
        result, inputs = case.eager()
    except Exception:
        return ""
    args = list(translate.value((case.sample.input, *case.sample.args, case.sample.kwargs)))
    tensors = _leaves(args, eager.Tensor, needs_grad=False)
    try:
        eager.manual_seed(42 if "wrapper_set_seed" in case.op.op.__code__.co_names else 0) if hasattr(
            case.op.op, "__code__"
        ) else eager.manual_seed(0)
        got = case.settled(graphc.compile(_compiled_function(case, args))(*tensors), ours=True)
    except CaptureError as error:  # the values decide on Python's flow or on a shape: refused, with the line
        return "" if DATA_DEPENDENT.search(str(error)) else f"raises CaptureError: {str(error)[:300]}"
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error)[:300]}"
    if text := difference(result, got, values=not RANDOM.match(case.op.name)):
        return text
    outs = [x for x in _leaves([result], eager.Tensor) if x.requires_grad]
    if not outs or not inputs:
        return ""
    theirs = [x for x in _leaves([got], eager.Tensor) if x.requires_grad]
    leaves = [x for x in tensors if x.requires_grad]
    if len(theirs) != len(outs):
        return f"gradient: {len(outs)} differentiable results became {len(theirs)}"
    cotangents = [
        translate.tensor(c)
        for c in _cotangents([torch.empty(tuple(o.shape), dtype=getattr(torch, kind(o))) for o in outs])
    ]
    try:
        expected = eager.autograd.grad(outs, inputs, cotangents, allow_unused=True)
    except Exception:
        return ""
    try:
        grads = eager.autograd.grad(theirs, leaves, cotangents, allow_unused=True)
    except Exception as error:
        return f"gradient: raises {type(error).__name__}: {str(error)[:300]}"
    expected = [e if e is not None else eager.zeros_like(i) for e, i in zip(expected, inputs, strict=True)]
    grads = [e if e is not None else eager.zeros_like(i) for e, i in zip(grads, leaves, strict=True)]
    text = difference(expected, grads)
    return f"gradient: {text}" if text else ""


def run_method(case: Case) -> str:
    method = case.op.method_variant
    if method is None:
        return ""
    case.theirs = method
    name = getattr(method, "__name__", case.op.name)
    if name == "<lambda>":
        return ""
    case.bind = lambda: setattr(case, "ours", getattr(eager.Tensor, name))
    return run_value(case)


def run_inplace(case: Case) -> str:
    method = case.op.inplace_variant
    if method is None or case.sample.broadcasts_input:
        return ""
    case.theirs = method
    name = getattr(method, "__name__", None)
    if name in (None, "<lambda>"):
        return ""
    case.bind = lambda: setattr(case, "ours", getattr(eager.Tensor, name))
    return run_value(case)


def run_out(case: Case) -> str:
    """`out=` of the right kind is filled and returned; one of another dtype is refused as PyTorch refuses it."""
    if not case.op.supports_out:
        return ""
    warnings.simplefilter("ignore")
    with torch.no_grad(), eager.no_grad():
        try:
            expected = case.torch()[0]
            single = isinstance(expected, torch.Tensor)
            like = [expected] if single else list(expected)
            if not all(isinstance(x, torch.Tensor) for x in like):
                return ""
            outs = [torch.empty(tuple(x.shape), dtype=x.dtype) for x in like]
            args = (case.sample.input, *case.sample.args)
            torch.manual_seed(0)
            case.theirs(*args, **case.sample.kwargs, out=outs[0] if single else tuple(outs))
        except Exception:
            return ""
        try:
            case.bind()
            mine = [eager.empty(tuple(x.shape), dtype=translate.DTYPES[x.dtype]) for x in like]
            args = translate.value((case.sample.input, *case.sample.args, case.sample.kwargs))
            eager.manual_seed(0)
            got = case.ours(*args[:-1], **args[-1], out=mine[0] if single else tuple(mine))
        except Exception as error:
            return f"raises {type(error).__name__}: {str(error)[:200]}"
        got = [got] if single else list(got)
        if any(a is not b for a, b in zip(got, mine, strict=True)):
            return "the result is not out"
        expected = expected if single else tuple(expected)
        if text := difference(expected, mine[0] if single else tuple(mine), not RANDOM.match(case.op.name)):
            return text
        if single:
            for wrong in (torch.int64, torch.float32, torch.complex64):
                out = torch.empty(tuple(expected.shape), dtype=wrong)
                args = (case.sample.input, *case.sample.args)
                try:
                    case.theirs(*args, **case.sample.kwargs, out=out)
                    refused = None
                except Exception as error:
                    refused = error
                mine_out = eager.empty(tuple(expected.shape), dtype=translate.DTYPES[wrong])
                args = translate.value((case.sample.input, *case.sample.args, case.sample.kwargs))
                try:
                    case.ours(*args[:-1], **args[-1], out=mine_out)
                    own = None
                except Exception as error:
                    own = error
                if type(own).__name__ != type(refused).__name__:
                    return f"out of {wrong}: {refused!r} became {own!r}"
                if refused is None and (text := difference(out, mine_out, not RANDOM.match(case.op.name))):
                    return f"out of {wrong}: {text}"
    return ""


def _shares(result: Any, tensors: list[Any]) -> bool:
    """Whether a tensor lies in the memory of one of the others."""
    if isinstance(result, torch.Tensor):
        return any(result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for x in tensors)
    return any(np.may_share_memory(translate.array(result), translate.array(x)) for x in tensors)


def run_view(case: Case) -> str:
    """A view of an argument stays one, a copy a copy; the strides of views are PyTorch's."""
    given = (case.sample.input, *case.sample.args, case.sample.kwargs)
    theirs = _leaves(given, torch.Tensor, False)
    try:
        expected = case.theirs(*given[:-1], **given[-1])
        args = translate.value(given)
        case.bind()
        got = case.ours(*args[:-1], **args[-1])
    except Exception:
        return ""
    mine = _leaves(args, eager.Tensor, False)
    pairs = zip(_leaves([expected], torch.Tensor, False), _leaves([got], eager.Tensor, False), strict=False)
    for a, b in pairs:
        if a.is_conj() or a.is_neg() or not a.numel():
            continue
        shared = _shares(a, theirs)
        if shared != _shares(b, mine):
            return f"shares memory: {shared} became {not shared}"
        if shared and a.stride() != tuple(b.stride()):
            return f"strides {a.stride()} became {tuple(b.stride())}"
    return ""


VALUE_DTYPES = (*translate.DTYPES,)
ASPECTS = {
    "value": (run_value, VALUE_DTYPES, False),
    "gradient": (run_gradient, (torch.float32, torch.float64, torch.complex128), True),
    "compiled": (run_compiled, (torch.float64, torch.complex64, torch.int32, torch.bool), True),
    "method": (run_method, (torch.float32, torch.int64), False),
    "inplace": (run_inplace, (torch.float32, torch.int64, torch.complex64), False),
    "out": (run_out, (torch.float32, torch.int64), False),
    "view": (run_view, (torch.float32,), False),
}


def samples(op: OpInfo, dtype: torch.dtype, grad: bool, limit: int, more: bool = False) -> Iterator[SampleInput]:
    """The samples of an op at a dtype; with those of PyTorch's reference tests if `more`.

    They are those of `op.sample_inputs`, which looks through all frames of the stack for a test of PyTorch's first:
    that takes ten times as long as the rest of a test here.
    """
    warnings.simplefilter("ignore")
    grad = grad and dtype in op.supported_backward_dtypes("cpu")
    make = (more and op.reference_inputs_func) or op.sample_inputs_func
    seed_all(7)
    given = islice(make(op, "cpu", dtype, requires_grad=grad), limit)
    while True:
        seed_all(SEED)
        try:
            yield next(given)
        except StopIteration:
            return


def seed_all(seed: int) -> None:
    """Seed whatever samples draw from, without the generators of GPUs."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def survey(op: OpInfo, aspect: str, limit: int, most: int = 3, more: bool = False) -> tuple[int, list[Finding]]:
    """How many samples were run, and what was found (at most `most` a dtype)."""
    run, dtypes, grad = ASPECTS[aspect]
    count, found = 0, []
    full = f"{op.name} {op.variant_test_name}".strip()
    for dtype in dtypes:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        here = 0
        try:
            made = list(samples(op, dtype, grad, limit, more))
        except Exception as error:
            print("no samples", full, dtype, repr(error)[:100], file=sys.stderr)
            continue
        for sample in made:
            count += 1
            if text_ := run(Case(op, sample)):
                found.append(Finding(full, aspect, str(dtype)[6:], text(sample), text_))
                here += 1
                if here >= most:
                    break
    return count, found


def survey_errors(op: OpInfo) -> tuple[int, list[Finding]]:
    """PyTorch's invalid arguments: type and wording."""
    if op.error_inputs_func is None:
        return 0, []
    found, count = [], 0
    full = f"{op.name} {op.variant_test_name}".strip()
    try:
        made = list(op.error_inputs("cpu"))
    except Exception as error:
        print("no error samples", full, repr(error)[:100], file=sys.stderr)
        return 0, []
    for item in made:
        count += 1
        case = Case(op, item.sample_input)
        try:
            case.torch()
            continue
        except Exception as error:
            expected = error
        try:
            case.eager()
            difference_ = f"no {type(expected).__name__}: {str(expected)[:150]}"
        except translate.Untranslatable:
            continue
        except Exception as error:
            if isinstance(error, type(expected)) and str(error) == str(expected):
                continue
            same_type = isinstance(error, type(expected))
            was, now = (f"{type(e).__name__}: {str(e)[:150]}" for e in (expected, error))
            difference_ = ("wording " if same_type else "") + f"{was}\n      became {now}"
        found.append(Finding(full, "errors", "", text(item.sample_input), difference_))
    return count, found


NAMES = frozenset((Path(__file__).parent / "names.txt").read_text().split())


def is_wanted(op: OpInfo) -> bool:
    """Whether `eager` means to have an op of PyTorch's list."""
    return op.name in NAMES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aspect", nargs="*", default=["value"])
    parser.add_argument("--only", default=".")
    parser.add_argument("--all", action="store_true", help="also ops that are not in names.txt")
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--most", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--more", action="store_true")
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    found: list[Finding] = []
    chosen = [o for o in op_db if re.search(options.only, o.name) and (options.all or is_wanted(o))]
    total = 0
    for op in chosen[part::parts]:
        for aspect in options.aspect:
            start = time.perf_counter()
            count, new = (
                survey_errors(op)
                if aspect == "errors"
                else survey(op, aspect, options.limit, options.most, options.more)
            )
            total += count
            found += new
            for f in new:
                print(f"{f.op} [{f.aspect} {f.dtype}] ({f.sample})\n    {f.difference}", flush=True)
            if (spent := time.perf_counter() - start) > 20:
                print(f"# {op.name} {aspect} {spent:.0f} s for {count}", flush=True)
    print(f"# {total} samples, {len(found)} findings, {len({f.op for f in found})} ops of {len(chosen[part::parts])}")
    if options.json:
        Path(options.json).write_text(json.dumps([f._asdict() for f in found], indent=1))


if __name__ == "__main__":
    main()
