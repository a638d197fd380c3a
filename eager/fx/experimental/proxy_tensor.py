"""As `torch.fx.experimental.proxy_tensor`."""

from eager.compiling.compiled import make_fx
from eager.functional.symbolic import get_proxy_mode

__all__ = ["get_proxy_mode", "make_fx"]
