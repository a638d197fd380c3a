"""`torch.jit`: programs are captured by `torch.compile`; there is no TorchScript.

`script` and `trace` give what `torch.compile` gives, and warn that they are deprecated, as PyTorch does. Saved programs
are `graphc.export`'s.
"""

from typing import Any, Final, List  # noqa: F401, UP035  (List: of torch.jit.annotations)

from eager.compiling.scripts import *  # noqa: F403
from eager.compiling.scripts import __all__ as __all__

_script_if_tracing = script_if_tracing  # noqa: F405  # torchvision's spelling
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list  # torch.jit.annotations: a number stands for so many


def _overload_method(fn: Any) -> Any:
    """`fn`: one of the forms that TorchScript compiles of a method."""
    return fn


__path__: list[str] = []  # in PyTorch it has modules: `core/elsewhere.txt`
