"""Checks the programs of `faults`, right ones and wrong ones."""

from __future__ import annotations

import sys

import compare
from compare.modes import Ranks
from eager import distributed as dist
from tests.distributed import faults
from tests.distributed.jobs import keep


def main() -> None:
    dist.init_process_group("gloo")
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for make in (*faults.RIGHT, *faults.WRONG):
        case = make()
        report = compare.check(case.step, *case.args, modes=[Ranks(whole=case.whole, draws=case.draws)])
        found[make.__name__] = str(report), case.names
    keep(sys.argv[1], dist.get_rank(), found)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
