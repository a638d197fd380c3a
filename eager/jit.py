"""`torch.jit`: programs are captured by `torch.compile`; there is no TorchScript.

`script` and `trace` give what `torch.compile` gives, and warn that they are deprecated, as PyTorch does. Saved programs
are `graphc.export`'s.
"""

from typing import Any, Final, List  # noqa: F401, UP035  (List: of torch.jit.annotations)

from eager.compiling.scripts import (
    ScriptFunction,
    ScriptModule,
    annotate,
    export,
    fork,
    freeze,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    load,
    onednn_fusion_enabled,
    optimize_for_inference,
    save,
    script,
    script_if_tracing,
    trace,
    unused,
    wait,
)

__all__ = [
    "Final", "ScriptFunction", "ScriptModule", "annotate", "export", "fork", "freeze", "ignore", "interface",
    "is_scripting", "is_tracing", "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script",
    "script_if_tracing", "trace", "unused", "wait",
]  # fmt: skip
_script_if_tracing = script_if_tracing  # torchvision's spelling
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list  # torch.jit.annotations: a number stands for so many


def _overload_method(fn: Any) -> Any:
    """`fn`: one of the forms that TorchScript compiles of a method."""
    return fn
