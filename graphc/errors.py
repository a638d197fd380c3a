"""Exceptions of graphc. Where PyTorch has a type and a wording for an error, those are used instead.

Message texts are constants, so that tests hold them and a reader finds them in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pickle import UnpicklingError
from types import ModuleType
from typing import Self


class GraphcError(Exception):
    """Base of every error that only graphc raises."""


class CaptureError(GraphcError, RuntimeError):
    """The program cannot be captured faithfully as a graph."""


class UnrolledError(CaptureError):
    """A trace has unrolled more of a Python loop than a program may have: `nodes`, the operations recorded by then."""

    def __init__(self, message: str, nodes: int):
        super().__init__(message)
        self.nodes = nodes


class KeeperStaysError(GraphcError):
    """A trace has made an optimizer that is still there after it, and took what that keeps for values of one call."""


class PathChanged(GraphcError):
    """A value on which the path of a traced program depends is another now. `graphc.compile` takes the other path."""


class RetraceError(GraphcError, RuntimeError):
    """A compiled function would have to be traced more often than `max_retraces` allows."""


class MemoryBudgetError(GraphcError, RuntimeError):
    """A program takes more memory than it may, whatever it computes again: `least`, the bytes that it can do with."""

    def __init__(self, message: str, least: int):
        super().__init__(message)
        self.least = least


class MicrobatchError(CaptureError, ValueError):
    """A step cannot be computed for one part of its batch after the other."""


class EscapedSymbolError(CaptureError):
    """A traced tensor was used after its trace had ended."""


class GraphError(GraphcError, ValueError):
    """A graph is not well formed."""


class OpaqueGradientError(GraphError, CaptureError):
    """The gradient rule of an autograd.Function, or of a hook, is not part of the graph."""


class FileError(GraphcError):
    """What comes from outside, a file or a text, is not what it should be. Each reader raises a kind of this.

    problem  what is wrong
    file     as the caller has named it; "" for a text
    place    in the file: a line, or a path such as "verdicts[3].mode"; "" if it is all of it
    """

    wording = "{file}: {problem}"

    def __init__(self, problem: str, *, file: str = "", place: str = ""):
        said = f"{place}: {problem}" if place else problem
        super().__init__(self.wording.format(file=file, problem=said) if file else said)
        self.problem, self.file, self.place = problem, file, place

    @classmethod
    def of(cls, file: str) -> Callable[[str, str], Self]:
        """What makes these errors about `file` of (problem, place)."""
        return lambda problem, place: cls(problem, file=file, place=place)


class ParseError(FileError, GraphError):
    """A text, or a file, is not a graph."""


class TensorFileError(FileError, RuntimeError):
    """A file is none that `torch.load` of eager can read."""

    wording = "{file} cannot be loaded: {problem}"


class WeightsError(TensorFileError, UnpicklingError):
    """The pickle in a file of tensors is damaged, or asks for more than values."""

    wording = "Weights only load failed. {file} cannot be loaded: {problem}"


class EmptyFileError(TensorFileError, EOFError):
    """There is nothing in a file of tensors."""


class ReportFileError(FileError, ValueError):
    """A file, or a text, is no report, certificate or campaign of `compare`."""


class ProgramFileError(FileError):
    """A file in the cache is not the program, or not the figures, that it should be. Never reaches the user."""


class RegistryError(GraphcError, ValueError):
    """An op declaration contradicts itself or the registry."""


class RuleError(GraphcError, ValueError):
    """A rewrite rule is not a usable equation."""


class AuditError(GraphcError, ValueError):
    """What an audit of the optimizer is asked for cannot be audited."""


class MissingExtraError(GraphcError, ImportError):
    """An optional dependency is not installed."""


class ForkedError(GraphcError, RuntimeError):
    """This process was forked from one that had started XLA, and something needs XLA."""


class ProcessorError(GraphcError, RuntimeError):
    """XLA has no code for a dtype on this processor."""


class LinAlgError(RuntimeError):
    """Data for which an algorithm of linear algebra has no result. As `torch.linalg.LinAlgError`."""


LinAlgError.__name__ = "_LinAlgError"  # as PyTorch shows it

FEEDS_BACK = (
    "{name}: microbatches={count}, but {op} at {where} takes the whole batch, and {user} at {there} needs it for each "
    "part. Remedy: of batch norm, eval() mode or a norm of single samples (GroupNorm, LayerNorm); of a loop over time, "
    "graphc.microbatched; of a loss, a sum or a mean over the batch"
)
UNDIFFERENTIATED = (
    "{name}: microbatches={count} is for steps that compute their gradients themselves. "
    "Remedy: call backward() inside the function, or compute under torch.no_grad()"
)
NO_BATCH = "{name}: microbatches={count}: expected tensors with one and the same first dimension, got {shapes}"
UNEVEN_BATCH = "{name}: microbatches={count} does not divide a batch of {size}"
NO_HALF = (
    "{name}: XLA cannot convert float16 on this processor, which has no F16C. "
    "Use bfloat16 or float32, or call the function without graphc.compile"
)
BRANCH_ON_TRACED = (
    "{what} of a traced tensor is not known while the graph is being captured.\n"
    "  value: {aval}, made at {made}\n"
    "  used at {used}\n"
    "Remedy: express the choice with torch.where(cond, a, b) or graphc.cond, or take the branch outside the compiled "
    "function."
)

ESCAPED_SYMBOL = (
    "a traced tensor {aval}, made at {made}, was used after its trace had ended.\n"
    "Remedy: return it from the traced function instead of storing it elsewhere."
)

TRACED_TO_NUMPY = (
    "{what} needs the values of a traced tensor, and a graph under capture has none.\n"
    "  value: {aval}, made at {made}\n"
    "  used at {used}\n"
    "Remedy: keep the computation in tensor operations, or move it outside the compiled function."
)

SHAPE_OF_VALUES = (
    "{what}: the values decide on the shape of the result, and here a graph has none: it is traced for any, or as the "
    "body of a loop or a branch.\n"
    "  used at {used}{line}\n"
    "Remedy: use {form}; or call it in a function that graphc.compile runs, outside of scan, while_loop and cond."
    "{rewritten}"
)

UNKNOWN_MEMORY = (
    "{what} needs more of the memory of a traced tensor than a graph knows. The tensor must show all elements that are "
    "wanted, and be one that fills its memory in row-major order, or a view of one.\n"
    "  value: {aval}, made at {made}\n"
    "  used at {used}\n"
    "Remedy: use a copy (clone), or express the view with slices, transpose, expand or unfold."
)

TOO_MANY_PATHS = (
    "{name} takes more than {most} paths that depend on the values of tensors; they part at {where}.\n"
    "Remedy: keep the choice in the graph with torch.where, graphc.cond or graphc.while_loop, or return the tensor "
    "and read its value outside."
)

_LOOPS = (
    "Remedy: a loop in the graph: graphc.while_loop(condition, body, carry), graphc.fori_loop(first, end, body, carry) "
    "or graphc.scan; or run the loop outside the compiled function."
)

UNROLLED = (
    "a Python loop asks the values of tensors whether to go on (at {where}), and is unrolled while it is traced: it "
    "has not ended after {rounds:,} rounds of {nodes:,} operations.\n" + _LOOPS
)

UNROLLED_BY_NUMBER = (
    "Python reads the number {value:,} from a tensor (at {where}), and {nodes:,} operations have been traced since "
    "then: a loop over such a number is unrolled.\n" + _LOOPS
)

ENDLESS = (
    "{nodes:,} operations have been traced, and no end (the latest at {where}): Python's loops are unrolled.\n" + _LOOPS
)

TOO_MUCH_UNROLLED = (
    "{name} is unrolled anew for each number of rounds of a loop that depends on the values of tensors: {paths:,} "
    "programs, and {work:,} operations more than the shortest of them has. They part at {where}.\n" + _LOOPS
)

OVER_BUDGET = (
    "{name}: memory={limit}, but the least that was found is {least} ({bytes:,} bytes), where values are computed "
    "again; without, it takes {base}. The largest at its peak: {largest}.\n"
    "Remedy: a larger budget, or a part of the batch at a time (graphc.microbatched)."
)
TOO_MANY_RETRACES = (
    "{name} would be traced again after max_retraces={most}: {reason}.\n"
    "Remedy: keep what changes in a tensor, or allow more."
)

TRACED_FOR_EACH_VALUE = (
    "{name} is traced and compiled again for each value that Python reads from a tensor at {where}; `explain()` counts "
    "the programs.\n"
    "Remedy: keep the computation in tensor operations, or read the value outside of the compiled function."
)

EAGER_FOR_OTHER_VALUES = (
    "{name} is compiled for {most} of the values that Python reads from tensors at {where}; for each value that comes "
    "later it runs eagerly, until that has taken as long as a program takes to make.\n"
    "Remedy: keep the computation in tensor operations, or read the value outside of the compiled function."
)

DECIDES_ON_VALUES = (
    "{what} decides on the values of losses and gradients how often it calls its closure, and what it remembers: as a "
    "graph it would be traced anew at almost every call.\n"
    "Remedy: compile the loss that the closure computes, and call {what} outside of the compiled function:\n"
    "    loss = graphc.compile(lambda: loss_fn(model(x), y))\n"
    "    def closure(): optimizer.zero_grad(); value = loss(); value.backward(); return value"
)

SIZE_MISSING = "{name}: the symbolic size {size} has no value.\nRemedy: pass a size for each name."

SIZE_UNKNOWN = (
    "the size {size} of a placeholder is not known before the graph is run (used at {used}).\n"
    "Remedy: keep to arithmetic and comparisons on it, or give the placeholder a size."
)

SIZES_DIFFER = "the size {size} is {a} in one of the values that are fed, and {b} in another."

SIZE_REFUSED = (
    "{name}: the graph was made on the condition {condition} (at {where}), which these sizes do not meet.\n"
    "Remedy: make one for these sizes, or do without what asks for them there."
)

DATA_ASSIGNED = (
    "assigning to .data (at {used}) cannot be captured where {why}.\n"
    "Remedy: write in place, as in `tensor.data.copy_(value)`."
)

HISTORY_LOST = (
    "backward() came to a tensor that a compiled function had made before it raised (at {made}): what came of the call "
    "then are values, without the history that gradients need.\n"
    "Remedy: let the compiled function return the tensor, or raise in front of what is stored; or call the function "
    "itself, without graphc.compile."
)

SHOWS_OTHERWISE = (
    "{name} (at {used}) lets a tensor that outlives the call show other places of memory, which a graph cannot "
    "express.\n"
    "Remedy: use the function without underscore, which returns a view, and return that; or call {name} outside the "
    "compiled function."
)

HISTORY_BEHIND = (
    "a detached tensor, or .data, was given values that require grad, and its memory has been written in another way, "
    "or outlives the call (needed at {used}): a graph cannot tell the two apart.\n"
    "Remedy: write detached values (value.detach()), or to a copy (clone)."
)

HOOK_STAYS = (
    "a hook on a tensor that outlives the call (made at {used}) cannot be captured in a graph.\n"
    "Remedy: register it once, outside the compiled function."
)
HOOK_ON_VIEW = (
    "the function registers a hook on a view (made at {made}) that it both returns, itself or as another view, and "
    "computes with: gradients from outside and from inside meet nowhere in a compiled function.\n"
    "Remedy: register the hook on view.clone()."
)
RETAINED_RESULT = (
    "retain_grad() on a tensor (made at {made}) that the function returns with its history: gradients from outside and "
    "from inside meet nowhere in a compiled function.\n"
    "Remedy: torch.autograd.grad inside the function, for this tensor, or this function without compile."
)
HANDLE_LEAVES = (
    "the handle of a hook that a compiled function registers cannot leave it: each call registers a hook of its own.\n"
    "Remedy: remove the hook inside, or register it outside the compiled function."
)

SPARSE_MOMENTUM = (
    "the momentum of a sparse gradient has other elements after each step, which a graph under capture cannot keep.\n"
    "Remedy: SparseAdam, SGD without momentum, or step() outside the compiled function."
)

PATTERN_WRITTEN = (
    "{name}_() gives a sparse tensor other elements in place, which a graph under capture cannot write back.\n"
    "Remedy: make a new tensor, `x = x + y` in place of `x += y`, or do this outside the compiled function."
)

BYTES_ARE_NOT_CAPTURED = (
    "{what} looks at the bytes in memory, and a graph has values.\nRemedy: call it outside the compiled function."
)

MOVED_AWAY = (
    "a tensor of a program that runs on {source} is moved to {where}, in {used}. A program runs on one device.\n"
    "Remedy: move the result of the compiled function."
)
SHARED_MEMORY = (
    "tensors that share memory in a way that a graph cannot express are written in place (at {used}): they differ in "
    "dtype, their memory is not one array, or it is on a device.\nRemedy: give the compiled function copies (clone)."
)

SHARED_GRAD = (
    "a .grad that shares memory with another tensor of the call is read, and one of them is written in place (at "
    "{used}), which a graph does not show.\nRemedy: give the .grad memory of its own (w.grad = w.grad.clone())."
)

NDARRAY_MEMORY = (
    "a tensor is written in place (at {used}) that shares memory with an ndarray, which is to show what a graph only "
    "computes later.\nRemedy: copy the ndarray (torch.tensor), or make the tensor outside the compiled function."
)

VALUES_WRITTEN = (
    "an ndarray of a traced tensor's values (made at {used}) is written, which would not write the tensor.\n"
    "Remedy: write the tensor (x[0] = 5), or a copy of the ndarray."
)

NO_TAPE_NODE = (
    "{what} of a grad_fn is asked, and a graph under capture has no tape nodes: all it knows is whether there is a "
    "history.\n"
    "  value: {aval}, made at {made}\n"
    "  used at {used}\n"
    "Remedy: ask `grad_fn is None` or `is_leaf`, or look at nodes outside the compiled function."
)

ASSIGN_WHILE_BUILDING = (
    "{op}: a tensor without a value cannot be written to one that has a value (at {used}).\n"
    "Remedy: pass the pair to graphc.function(..., updates=[(variable, new value)])."
)

COMPUTED_BEFORE = (
    "a tensor that was computed from others that require grad meets the graph (at {used}), and it is not known how: "
    "the graph would hold its value for ever, whatever becomes of those.\n"
    "Remedy: compute it after the first placeholder has been made, without in-place writes on the way, or detach() it."
)

BACKWARD_WHILE_BUILDING = (
    "backward() of a tensor without a value (at {used}): there is nothing to fill .grad with.\n"
    "Remedy: use graphc.gradients(ys, xs), which gives the gradients as tensors of the graph."
)

GRAD_OF_THE_PAST = (
    "this .grad (read at {used}) also depends on operations from before the compiled function, whose gradients are "
    "computed only after it.\nRemedy: compile those operations, too, or read the gradient after the call."
)

SPARSE_GRAD = (
    "a sparse .grad from before the call is read (at {used}), which is no input of a program.\nRemedy: begin the "
    "compiled step with optimizer.zero_grad()."
)

OPAQUE_GRADIENT = (
    "the result of an autograd.Function (at {where}) cannot be differentiated in a graph by itself: its gradient rule "
    "is a Python program.\nRemedy: call backward() or autograd.grad() inside the traced function, or use "
    "graphc.compile."
)

NO_ARRAY = (
    "{what}{path} is a {kind}: operands and results of control flow are tensors and numbers, in any nest of tuples, "
    "lists, dicts and dataclasses.\nRemedy: let the function reach other objects by itself (a closure)."
)

OTHER_STRUCTURE = "{what} is {got}, expected {expected}: the structure may not depend on the path or the step."

OTHER_LEAF = (
    "{what}{path} is {got}, expected {expected} (at {used}): shapes and dtypes may not depend on the path or the "
    "step.\nRemedy: convert it with .to(dtype) or reshape, or start from a value of the other shape or dtype."
)

RUNS_IN_PARTS = (
    "{name} is a generator or coroutine: it runs in parts, and the caller's code in between, which no program can.\n"
    "Remedy: compile the functions that it calls."
)

CHANGES_ARGUMENT = (
    "the function changes '{what}', a container among its arguments, which a graph alone cannot express. "
    "Remedy: use graphc.compile, which carries the change out."
)

WRITE_IN_BODY = (
    "{name}_(): a function given to cond, switch, while_loop, scan, fori_loop or map writes to a tensor from outside "
    "(at {used}).\nRemedy: return the new value, as part of the carry or the result."
)

EFFECT_IN_BODY = (
    "{what}: the function changes a tensor from outside, or its .grad (at {used}).\n"
    "Remedy: return the new value, as part of the carry or the result; take gradients with autograd.grad."
)

RULE_FAILED = (
    "the gradient rule of an autograd.Function, or a hook (of the value made at {where}), cannot be part of a graph: "
    "{kind}: {error}"
)

RULE_IS_NOT_LINEAR = (
    "gradients of gradients through a gradient rule that is not linear in the gradient (a hook, or an "
    "autograd.Function, at {where}) are not supported in a function given to control flow.\n"
    "Remedy: run this part eagerly."
)

RULES_IN_RULES = (
    "gradient rules are made of Functions whose rules are made of Functions, too deep to trace them.\n"
    "Remedy: write the inner ones in tensor operations."
)

RULE_READS_LATER = (
    "a hook (on the value made at {where}) reads what is computed from the very tensor that it is on. In a function "
    "given to control flow, and for gradients of gradients, it cannot.\nRemedy: compute that from x.detach()."
)

HOOK_OUTSIDE = (
    "a function given to control flow registers a hook on a tensor from outside (at {used}), which would have it from "
    "each step or branch.\nRemedy: register it outside, or on a clone: x = x.clone()."
)

DRAW_IN_BODY = (
    "{what}: the function draws random numbers (at {used}), how many is only known when the program runs.\n"
    "Remedy: draw them before, and pass them as operands."
)

DRAW_IN_RULE = (
    "the gradient rule of an autograd.Function, or a hook, draws random numbers or reads what moves from call to "
    "call.\n"
    "Remedy: do so in forward, and save it for backward."
)

FORKED = (
    "{what} needs XLA, and this process was forked from one that had started it: XLA's threads are not in the copy, "
    "and it would wait for them for ever.\n"
    "Remedy: start such processes by multiprocessing.set_start_method('spawn') or 'forkserver' (for a DataLoader, "
    "multiprocessing_context='spawn'), or fork before anything is compiled."
)

FORKED_EAGER = (
    "compiled functions run eagerly in this process, which was forked from one that had started XLA. To have them "
    "compiled, start it by multiprocessing.set_start_method('spawn') or 'forkserver'."
)

MISSING_EXTRA = "{feature} needs {package}, which is not installed. Remedy: pip install 'graphc[{extra}]'"


def require(module: str, feature: str, extra: str) -> ModuleType:
    """Import and return optional dependency `module`, or raise `MissingExtraError` naming the extra that has it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(MISSING_EXTRA.format(feature=feature, package=package, extra=extra)) from error
