"""Runs all collectives of `cases`."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from tests.distributed.cases import CASES
from tests.distributed.jobs import keep, sides


def main() -> None:
    torch, dist = sides(sys.argv)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    found: dict[str, Any] = {}
    for name, case in CASES.items():
        try:
            found[name] = case.program(torch, dist, rank, size)
        except Exception:
            found[name] = traceback.format_exc()
        dist.barrier()
    keep(sys.argv[1], rank, found)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
