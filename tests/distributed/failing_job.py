"""Fails as it is told to: what, and in which rank."""

from __future__ import annotations

import os
import signal
import sys
import time


def main(how: str, where: int) -> None:
    rank = int(os.environ["RANK"])
    print(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']} of {os.environ['WORLD_SIZE']}")
    if how in ("stop", "hang", "kill in a collective", "order"):
        import eager as torch
        from eager import distributed as dist

        dist.init_process_group("gloo")
        x = torch.ones(2)
        dist.all_reduce(x)
        if rank == where and how == "order":
            dist.all_reduce(torch.ones(3))
        if rank == where:
            fail(how)
        dist.all_reduce(x)
        dist.destroy_process_group()
    elif rank == where:
        time.sleep(0.3)
        fail(how)
    elif how != "once":
        time.sleep(600)


def fail(how: str) -> None:
    if how == "raise":
        raise ValueError("this one is to blame")
    if how == "once" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(3)
    if how.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "hang":
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
