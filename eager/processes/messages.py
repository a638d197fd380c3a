"""Messages from one process to another. As `torch.distributed.send` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.grad_mode import no_grad
from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.processes import mail
from eager.processes.collectives import collective, position, tensor_argument
from eager.processes.futures import Work
from eager.processes.world import ProcessGroup, get_rank, world
from graphc.errors import CaptureError

CAPTURED = (
    "{what}() cannot be part of a compiled program: who takes part depends on the rank, and all processes run one "
    "program. Call it outside of the compiled function, or use a collective (all_to_all, broadcast)"
)
ITSELF = "Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process."
NOT_P2P = "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
LENGTH = "the message of rank {source} has {got} bytes, the tensor to receive it {expected}"


def peer(group: ProcessGroup, rank: int | None, group_rank: int | None, kind: str) -> int:
    """The number of another process of `group`. ValueError if it is this one."""
    found = group.ranks[position(group, rank, group_rank)]
    if found == get_rank():
        raise ValueError(ITSELF.format(kind=kind))
    return found


def _now(what: str) -> None:
    if not current_interpreter().immediate:
        raise CaptureError(CAPTURED.format(what=what))


@collective("tensor")
def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:  # fmt: skip
    """Send `tensor` to `dst`; it may be written to at once. As `torch.distributed.isend`."""
    _now("isend")
    target = peer(group, dst, group_dst, "destination")
    kind = mail.kind_of("tensor", group, get_rank(), target, tag)
    mail.post(f"{kind}/{mail.number(kind)}", np.ascontiguousarray(tensor._array()).tobytes())
    return Work(results=[tensor])


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send `tensor` to `dst`. As `torch.distributed.send`."""
    isend(tensor, dst, group, tag, group_dst)


class _Receipt(Work):
    """A message that is taken when somebody waits for it."""

    def __init__(self, take: Callable[[float], int], keys: list[str], timeout: float, tensor: Tensor):
        super().__init__(timeout=timeout, results=[tensor])
        self._take, self._keys = take, keys
        self.source: int | None = None

    def wait(self, timeout: Any = None) -> bool:
        """Wait for the message. DistBackendError if it does not come in time."""
        if self.source is None:
            self.source = self._take(self._timeout if timeout is None else timeout.total_seconds())
        return True

    def is_completed(self) -> bool:
        """Whether it has come."""
        if self.source is None and any(world.transport.try_get(key) is not None for key in self._keys):
            self.wait()
        return self.source is not None

    is_success = is_completed


@collective("tensor")
def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
          group_src: int | None = None) -> Work | None:  # fmt: skip
    """Receive into `tensor` from `src`, None: from anybody. As `torch.distributed.irecv`."""
    _now("irecv")
    anybody = src is None and group_src is None
    sources = [r for r in group.ranks if r != get_rank()] if anybody else [peer(group, src, group_src, "source")]
    kinds = [mail.kind_of("tensor", group, source, get_rank(), tag) for source in sources]
    label = f"recv(from {'anybody' if anybody else f'rank {sources[0]}'})"
    # one that takes from anybody is counted for the one it takes from, when it has come
    keys = [f"{kind}/{mail.number(kind)}" for kind in kinds] if not anybody else []

    def take(seconds: float) -> int:
        if anybody:
            k, message = mail.take_any([f"{kind}/{mail.upcoming(kind)}" for kind in kinds], seconds, label)
            mail.number(kinds[k])
        else:
            k, message = 0, mail.take(keys[0], 1, seconds, label)
        _write(tensor, message, sources[k])
        return sources[k]

    return _Receipt(take, keys, group.timeout, tensor)


def _write(tensor: Tensor, message: bytes, source: int) -> None:
    dtype = tensor._dtype()
    expected = tensor.numel() * dtype.itemsize
    if len(message) != expected:
        raise RuntimeError(LENGTH.format(source=source, got=len(message), expected=expected))
    with no_grad():
        tensor.copy_(Tensor._wrap(np.frombuffer(message, dtype).reshape(tuple(tensor.shape)).copy()))


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive into `tensor`; returns the sender's number, -1 outside of the group. As `torch.distributed.recv`."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    assert isinstance(work, _Receipt)
    work.wait()
    assert work.source is not None
    return work.source


class P2POp:
    """One of the messages of `batch_isend_irecv`. As `torch.distributed.P2POp`."""

    def __init__(self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
                 group_peer: int | None = None):  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(NOT_P2P)
        tensor_argument(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.peer, self.group, self.group_peer = peer, group, group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all messages of a list. As `torch.distributed.batch_isend_irecv`."""
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if any(p.group is not p2p_op_list[0].group for p in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    begun = [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
    return [work for work in begun if work is not None]
