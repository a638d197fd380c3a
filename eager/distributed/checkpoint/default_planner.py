"""What is saved, and what is loaded. As `torch.distributed.checkpoint.default_planner`."""

from __future__ import annotations


class DefaultSavePlanner:
    """Save every value. Of blocks that several ranks hold, one of them saves each, so that they share the work.

    The arguments of PyTorch's change nothing: nested dicts are always taken apart, and copies saved once.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ):
        pass


class DefaultLoadPlanner:
    """Load every value of the state dict. allow_partial_load: leave those as they are that the checkpoint has not."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ):
        self.allow_partial_load = allow_partial_load
