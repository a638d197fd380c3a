"""`torch.backends.opt_einsum`: not used here; `einsum` plans its products by itself."""

from __future__ import annotations

from eager.backends.switches import flags_of

enabled, strategy = False, None
flags = flags_of(globals())


def is_available() -> bool:
    """False: it is not used."""
    return False


def get_opt_einsum() -> None:
    """None: it is not used."""
