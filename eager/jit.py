"""`torch.jit`: programs are captured by `torch.compile`; there is no TorchScript.

`script` and `trace` give what `torch.compile` gives, and warn that they are deprecated, as PyTorch does. Saved programs
are `graphc.export`'s.
"""

from typing import Final

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
