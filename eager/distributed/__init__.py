"""Processes that compute together, meshes of devices, and what lies on them in parts. As `torch.distributed`.

`python -m graphc.launch` starts processes. Programs that `graphc.compile` makes for a mesh read where parameters lie.
Names are loaded on first use: a program that computes alone pays nothing for them.
"""

from __future__ import annotations

from graphc.lazy import lazy

# module -> the public names that it has
_NAMES = {
    "eager.distributed.device_mesh": "DeviceMesh init_device_mesh",
    "eager.processes.world": "Backend GroupMember ProcessGroup ReduceOp destroy_process_group get_backend "
    "get_global_rank get_group_rank get_node_local_rank get_process_group_ranks get_rank get_world_size group "
    "init_process_group is_initialized new_group new_subgroups new_subgroups_by_enumeration",
    "eager.processes.collectives": "all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single barrier "
    "broadcast gather monitored_barrier reduce reduce_scatter reduce_scatter_tensor scatter",
    "eager.processes.several": "all_gather_coalesced all_reduce_coalesced",
    "eager.processes.backends": "BackendConfig DebugLevel get_backend_config get_debug_level "
    "get_default_backend_for_device get_pg_count is_backend_available is_ucc_available is_xccl_available "
    "supports_complex",
    "eager.processes.messages": "P2POp batch_isend_irecv irecv isend recv send",
    "eager.processes.objects": "all_gather_object broadcast_object_list gather_object recv_object_list "
    "scatter_object_list send_object_list",
    "eager.processes.stores": "FileStore HashStore PrefixStore Store TCPStore",
    "eager.processes.errors": "DistBackendError DistError DistNetworkError DistStoreError QueueEmptyError",
    "eager.processes.futures": "Work",
    "eager.nn.parallel.reducer": "GradBucket",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "is_available", "is_gloo_available", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", *_WHERE,
]  # fmt: skip
_MODULES = (
    "algorithms", "checkpoint", "device_mesh", "elastic", "fsdp", "nn", "optim", "pipelining", "run", "tensor",
)  # fmt: skip
__getattr__, __dir__ = lazy(__name__, _WHERE, _MODULES)


def is_available() -> bool:
    """Whether processes can exchange tensors: they can, by JAX."""
    return True


def is_gloo_available() -> bool:
    """Whether CPUs can: JAX has Gloo for them."""
    return True


def is_nccl_available() -> bool:
    """Whether tensors of GPUs travel by themselves: those of this engine lie in the memory of CPUs."""
    return False


def is_mpi_available() -> bool:
    """Whether there is MPI: there is not."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher has started this process. As `torch.distributed.is_torchelastic_launched`."""
    import os

    return "TORCHELASTIC_RUN_ID" in os.environ
