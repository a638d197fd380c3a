"""Collectives of Python objects, which travel as pickles. As those of `torch.distributed`.

Only processes that trust each other may do this: to unpickle is to run what a pickle says.
"""

from __future__ import annotations

import pickle
from typing import Any

from eager.processes import mail
from eager.processes.collectives import collective, position
from eager.processes.messages import peer
from eager.processes.world import ProcessGroup, get_rank


def _give(what: str, group: ProcessGroup, target: Any, value: Any) -> None:
    kind = mail.kind_of(what, group, get_rank(), target)
    mail.post(f"{kind}/{mail.number(kind)}", pickle.dumps(value))


def _take(what: str, group: ProcessGroup, source: int, target: Any, readers: int = 1) -> Any:
    kind = mail.kind_of(what, group, source, target)
    return pickle.loads(mail.take(f"{kind}/{mail.number(kind)}", readers, group.timeout, f"{what} of rank {source}"))


@collective()
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """`object_list[k]` becomes process k's `obj`, everywhere. As `torch.distributed.all_gather_object`."""
    if len(object_list) < group.size():
        raise RuntimeError(f"the list must have {group.size()} places, one for each process, got {len(object_list)}")
    if group.size() > 1:
        _give("all_gather_object", group, "all", obj)
    for k, rank in enumerate(group.ranks):
        # what one has made itself is copied, too
        own = rank == get_rank()
        object_list[k] = (
            pickle.loads(pickle.dumps(obj)) if own else _take("all_gather_object", group, rank, "all", group.size() - 1)
        )


@collective()
def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
                          group_src: int | None = None) -> None:  # fmt: skip
    """The objects of `src`, in every list. As `torch.distributed.broadcast_object_list`."""
    source = group.ranks[position(group, 0 if src is None and group_src is None else src, group_src)]
    if source == get_rank():
        if group.size() > 1:
            _give("broadcast_object_list", group, "all", list(object_list))
        return
    _fill(object_list, _take("broadcast_object_list", group, source, "all", group.size() - 1), source)


def _fill(object_list: list[Any], found: list[Any], source: int) -> None:
    if len(found) != len(object_list):
        raise RuntimeError(f"rank {source} sends {len(found)} objects, the list has {len(object_list)}")
    object_list[:] = found


@collective()
def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
                  group_dst: int | None = None) -> None:  # fmt: skip
    """`object_gather_list[k]` of `dst` becomes process k's `obj`. As `torch.distributed.gather_object`."""
    target = group.ranks[position(group, 0 if dst is None and group_dst is None else dst, group_dst)]
    if target != get_rank():
        if object_gather_list:
            raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
        _give("gather_object", group, target, obj)
        return
    if not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    for k, rank in enumerate(group.ranks):
        own = rank == get_rank()
        object_gather_list[k] = pickle.loads(pickle.dumps(obj)) if own else _take("gather_object", group, rank, target)


@collective()
def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None, group: Any = None, group_src: int | None = None) -> None:  # fmt: skip
    """Object k of `src` becomes the first of the output list of process k.

    As `torch.distributed.scatter_object_list`.
    """
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    source = group.ranks[position(group, 0 if src is None and group_src is None else src, group_src)]
    if source != get_rank():
        scatter_object_output_list[0] = _take("scatter_object_list", group, source, get_rank())
        return
    given = scatter_object_input_list
    if given is None or len(given) != group.size():
        raise ValueError("Argument ``scatter_object_input_list`` must have an object for each process of the group")
    for rank, value in zip(group.ranks, given, strict=True):
        if rank == source:
            scatter_object_output_list[0] = pickle.loads(pickle.dumps(value))
        else:
            _give("scatter_object_list", group, rank, value)


@collective()
def send_object_list(object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None,
                     group_dst: int | None = None, use_batch: bool = False) -> None:  # fmt: skip
    """Send objects to `dst`. As `torch.distributed.send_object_list`."""
    _give("send_object_list", group, peer(group, dst, group_dst, "destination"), list(object_list))


@collective(outside=-1)
def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
                     group_src: int | None = None, use_batch: bool = False) -> int:  # fmt: skip
    """Receive objects from `src`; returns its number. As `torch.distributed.recv_object_list`."""
    source = peer(group, src, group_src, "source")
    _fill(object_list, _take("send_object_list", group, source, get_rank()), source)
    return source
