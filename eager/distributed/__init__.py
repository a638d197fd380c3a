"""`torch.distributed`, as in a PyTorch that was built without it: programs ask `is_available()`, and do without.

Meshes, placements and what places parameters are here: programs that `graphc.compile` makes for a mesh read them.
"""

from eager.core.missing import explain
from graphc.lazy import lazy

__all__ = ["is_available"]
__getattr__, __dir__ = lazy(
    __name__,
    dict.fromkeys(("DeviceMesh", "init_device_mesh"), "eager.distributed.device_mesh"),
    ("device_mesh", "fsdp", "tensor"),
)
explain(__name__)


def is_available() -> bool:
    """Whether processes can exchange tensors: no."""
    return False
