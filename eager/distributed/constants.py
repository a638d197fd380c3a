"""As `torch.distributed.constants`."""

from eager.processes.world import DEFAULT_TIMEOUT as default_pg_timeout

__all__ = ["default_pg_timeout"]
