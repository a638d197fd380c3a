"""The world: the processes that have called `init_process_group`, and groups of them."""

from __future__ import annotations

import datetime
import enum
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, final

from eager.processes import rendezvous
from graphc.ops.collectives import NOT_INITIALIZED, carrier

DEFAULT_TIMEOUT = datetime.timedelta(minutes=30)
HEARTBEAT = 100.0  # seconds: JAX's own
# seconds, in the environment: what a launcher bounds waits by
TIMEOUT_VARIABLE, HEARTBEAT_VARIABLE = "GRAPHC_COLLECTIVE_TIMEOUT", "GRAPHC_HEARTBEAT_TIMEOUT"
TWICE = "trying to initialize the default process group twice!"
NO_TIMEDELTA = "Expected timeout argument to be of type datetime.timedelta, got {timeout}"
NO_GROUP = "Process group cannot be None"
OUTSIDE = "Running {what} on global rank {rank} which does not belong to the given group."


class ReduceOp(enum.Enum):
    """How values of several processes become one. As `torch.distributed.ReduceOp`."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # the type of the members, in PyTorch another class


class Backend(str):
    """The name of what carries tensors. As `torch.distributed.Backend`; whatever is asked for, it is JAX's runtime."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    UCC = "ucc"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, UCC, MPI]

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


@final
class ProcessGroup:
    """Some processes of the world. As `torch.distributed.ProcessGroup`; `new_group` makes them.

    ranks    their numbers in the world, in the order of the group
    timeout  seconds that a collective may take
    """

    def __init__(self, ranks: Sequence[int], rank: int, timeout: float, name: str, desc: str, backend: str):
        self.ranks = tuple(ranks)
        self.timeout = timeout
        self._world_rank = rank
        self.group_name, self.group_desc, self._backend = name, desc, backend

    def rank(self) -> int:
        """The number of this process in the group."""
        return self.ranks.index(self._world_rank)

    def size(self) -> int:
        """How many processes there are."""
        return len(self.ranks)

    def name(self) -> str:
        """The backend."""
        return self._backend

    @property
    def bound_device_id(self) -> None:
        """None: no device is bound to a group."""
        return None

    def __repr__(self) -> str:
        return f"<torch.distributed.ProcessGroup {self.group_name} of ranks {', '.join(map(str, self.ranks))}>"


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before `init_process_group`."""
        return world.default


class group(metaclass=_GroupMeta):
    """`group.WORLD`. As `torch.distributed.group`."""


class GroupMember(metaclass=_GroupMeta):
    """As `torch.distributed.GroupMember`: `NON_GROUP_MEMBER` is what `new_group` gives processes outside of it."""

    NON_GROUP_MEMBER = -100


@final
class _World:
    """default: the group of all processes, None before they have met. transport: what carries arrays between them."""

    def __init__(self):
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.transport: Any = None
        self.made = 0  # groups, for their names
        self.alone = 0  # contexts `alone`


world = _World()


def is_initialized() -> bool:
    """Whether the processes have met. As `torch.distributed.is_initialized`."""
    return world.default is not None


def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: datetime.timedelta | None = None, world_size: int = -1, rank: int = -1,
                       store: Any = None, group_name: str = "", pg_options: Any = None,
                       device_id: Any = None) -> None:  # fmt: skip
    """Meet the other processes. As `torch.distributed.init_process_group`.

    init_method  "env://" reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; "tcp://host:port" is the address at which
                 rank 0 listens; through the file of "file:///path", or through `store`, rank 0 says where it listens
    timeout      how long a collective may wait, 30 minutes unless said otherwise

    Whatever `backend` is asked for, arrays travel by JAX: by Gloo between CPUs. Raises ValueError where it has been
    called before, or something is missing; AssertionError for an unknown backend; DistNetworkError where the others do
    not come in time.
    """
    if timeout is not None and not isinstance(timeout, datetime.timedelta):
        raise TypeError(NO_TIMEDELTA.format(timeout=timeout))
    if world.default is not None:
        raise ValueError(TWICE)
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    known = _backend(backend)
    seconds = _seconds(timeout)
    met = rendezvous.meet(init_method, store, world_size, rank, seconds)
    if met.size > 1:
        from graphc.lowering.processes import Processes

        heartbeat = float(os.environ.get(HEARTBEAT_VARIABLE, HEARTBEAT))
        world.transport = carrier.transport = Processes(met.address, met.size, met.rank, seconds, heartbeat)
    name = group_name or "0"
    world.default = ProcessGroup(range(met.size), met.rank, seconds, name, "default_pg", known)
    world.groups, world.made = [world.default], 1


def _backend(asked: str | None) -> Backend:
    found = Backend("gloo" if asked is None else asked)
    names = [part.rpartition(":")[2] for part in found.split(",")]
    for name in names:
        if name not in Backend.backend_list[1:]:
            raise AssertionError(f"Unknown backend type {name}")
    return found


def _seconds(timeout: datetime.timedelta | None) -> float:
    """What a collective may take: as asked for, but not longer than a launcher allows."""
    found = (DEFAULT_TIMEOUT if timeout is None else timeout).total_seconds()
    bound = os.environ.get(TIMEOUT_VARIABLE)
    return found if bound is None else min(found, float(bound))


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; the world if none is given, once all others do. As `torch.distributed.destroy_process_group`."""
    if world.default is None:
        raise AssertionError(NO_GROUP)
    if group is not None and group is not world.default:
        if group in world.groups:
            world.groups.remove(group)
        return
    transport, world.transport = world.transport, None
    carrier.transport, world.default, world.groups = None, None, []
    if transport is not None:
        transport.shutdown()


@contextmanager
def alone() -> Iterator[None]:
    """Context: each group of this process has it only, so that a program runs as it would in one process."""
    before = [(group, group.ranks) for group in world.groups]
    for group, _ in before:
        group.ranks = (group._world_rank,)
    world.alone += 1
    try:
        yield
    finally:
        world.alone -= 1
        for group, ranks in before:
            group.ranks = ranks


def default_group() -> ProcessGroup:
    """The group of all processes. ValueError before they have met."""
    if world.default is None:
        raise ValueError(NOT_INITIALIZED)
    return world.default


def resolved(group: Any) -> Any:
    """A group that a function was given: None means all. Either a ProcessGroup, or NON_GROUP_MEMBER."""
    everyone = default_group()
    if group is None:
        return everyone
    if not isinstance(group, ProcessGroup) and group != GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    return group


def member(group: Any, what: str) -> ProcessGroup | None:
    """`resolved(group)`, or None with PyTorch's warning where this process is not in it."""
    found = resolved(group)
    if found == GroupMember.NON_GROUP_MEMBER:
        warnings.warn(OUTSIDE.format(what=what, rank=get_rank()), stacklevel=3)
        return None
    return found


def get_rank(group: Any = None) -> int:
    """The number of this process in a group, -1 outside of it. As `torch.distributed.get_rank`."""
    found = resolved(group)
    return -1 if found == GroupMember.NON_GROUP_MEMBER else found.rank()


def get_world_size(group: Any = None) -> int:
    """How many processes a group has, -1 outside of it. As `torch.distributed.get_world_size`."""
    found = resolved(group)
    return -1 if found == GroupMember.NON_GROUP_MEMBER else found.size()


def get_backend(group: Any = None) -> Backend:
    """The backend that was asked for. As `torch.distributed.get_backend`."""
    found = resolved(group)
    if found == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    return Backend(found.name())


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The numbers in the world of a group's processes. As `torch.distributed.get_process_group_ranks`."""
    return list(resolved(group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of a process. As `torch.distributed.get_group_rank`."""
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number in the world of a group's process. As `torch.distributed.get_global_rank`."""
    if not 0 <= group_rank < len(group.ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine. As `torch.distributed.get_node_local_rank`."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def new_group(ranks: Sequence[int] | None = None, timeout: datetime.timedelta | None = None,
              backend: str | None = None, pg_options: Any = None, use_local_synchronization: bool = False,
              group_desc: str | None = None, device_id: Any = None, sort_ranks: bool = True) -> Any:  # fmt: skip
    """A group of the processes `ranks`, all if None; NON_GROUP_MEMBER outside of it. As `torch.distributed.new_group`.

    Nothing is sent: groups meet at their first collective.
    """
    everyone = default_group()
    if timeout is not None and not isinstance(timeout, datetime.timedelta):
        raise TypeError(NO_TIMEDELTA.format(timeout=timeout))
    given = everyone.ranks if ranks is None else tuple(ranks)
    if len(given) > everyone.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if any(not 0 <= rank < everyone.size() for rank in given):
        raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    if len(set(given)) < len(given):
        raise ValueError(f"group ranks must be unique, got {list(given)}")
    name, world.made = str(world.made), world.made + 1
    rank = everyone.rank()
    if rank not in given:
        return GroupMember.NON_GROUP_MEMBER
    seconds = everyone.timeout if timeout is None else _seconds(timeout)
    known = everyone.name() if backend is None else _backend(backend)
    made = ProcessGroup(sorted(given) if sort_ranks else given, rank, seconds, name, group_desc or "undefined", known)
    world.groups.append(made)
    return made


def new_subgroups_by_enumeration(ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: Any = None,
                                 backend: str | None = None, pg_options: Any = None,
                                 group_desc: str | None = None) -> tuple[Any, list[Any]]:  # fmt: skip
    """The group of this process among disjoint ones, and all. As `torch.distributed.new_subgroups_by_enumeration`."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    known: set[int] = set()
    for rank in (rank for ranks in ranks_per_subgroup_list for rank in ranks):
        if rank in known:
            raise ValueError(f"Rank {rank} has appeared in more than one subgroup")
        known.add(rank)
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    ours = next((g for g in made if isinstance(g, ProcessGroup)), None)
    return ours, made


def new_subgroups(group_size: int | None = None, group: Any = None, timeout: Any = None, backend: str | None = None,
                  pg_options: Any = None, group_desc: str | None = None) -> tuple[Any, list[Any]]:  # fmt: skip
    """Groups of `group_size` neighbours: that of this process, and all. As `torch.distributed.new_subgroups`."""
    ranks = resolved(group).ranks
    size = int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    if len(ranks) < size:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size ({len(ranks)})")
    if len(ranks) % size:
        raise ValueError(f"The world size ({len(ranks)}) must be divisible by 'group_size={size}'")
    parts = [ranks[k : k + size] for k in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)
