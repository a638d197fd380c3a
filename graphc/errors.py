"""Exceptions of graphc. Where PyTorch has a type and a wording for an error, those are used instead.

Message texts are constants, so that tests hold them and a reader finds them in one place.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class GraphcError(Exception):
    """Base of every error that only graphc raises."""


class CaptureError(GraphcError, RuntimeError):
    """The program cannot be captured faithfully as a graph."""


class EscapedSymbolError(CaptureError):
    """A traced tensor was used after its trace had ended."""


class GraphError(GraphcError, ValueError):
    """A graph is not well formed."""


class ParseError(GraphError):
    """A text is not a graph."""


class RegistryError(GraphcError, ValueError):
    """An op declaration contradicts itself or the registry."""


class RuleError(GraphcError, ValueError):
    """A rewrite rule is not a usable equation."""


class MissingExtraError(GraphcError, ImportError):
    """An optional dependency is not installed."""


class LinAlgError(RuntimeError):
    """Data for which an algorithm of linear algebra has no result. As `torch.linalg.LinAlgError`."""


LinAlgError.__name__ = "_LinAlgError"  # as PyTorch shows it

BRANCH_ON_TRACED = (
    "{what} of a traced tensor is not known while the graph is being captured.\n"
    "  value: {aval}, made at {made}\n"
    "  used at {used}\n"
    "Remedy: express the choice with torch.where(cond, a, b), or take the branch outside the compiled function."
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

UNKNOWN_MEMORY = (
    "{what} needs the place in memory of a traced tensor, which a graph knows only of one that fills its memory in "
    "row-major order.\n"
    "  value: {aval}, made at {made}\n"
    "  used at {used}\n"
    "Remedy: use a copy (clone), or express the view with slices, transpose, expand or unfold."
)

INPLACE_ON_VIEW = (
    "{op}: in-place write to a view of another tensor cannot be captured yet (at {used}).\n"
    "Remedy: write to the whole tensor, or build the new value with torch.where or torch.cat."
)

STALE_VIEW = (
    "a view made at {made} is used at {used} after its base was modified in place; this cannot be captured yet.\n"
    "Remedy: take the view again after the in-place write."
)

OPAQUE_GRADIENT = (
    "the result of an autograd.Function (at {where}) cannot be differentiated in a graph by itself: its gradient rule "
    "is a Python program.\nRemedy: call backward() or autograd.grad() inside the traced function, or use "
    "graphc.compile."
)

MISSING_EXTRA = "{feature} needs {package}, which is not installed. Remedy: pip install 'graphc[{extra}]'"


def require(module: str, feature: str, extra: str) -> ModuleType:
    """Import and return optional dependency `module`, or raise `MissingExtraError` naming the extra that has it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(MISSING_EXTRA.format(feature=feature, package=package, extra=extra)) from error
