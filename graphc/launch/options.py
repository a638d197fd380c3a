"""The command line of the launcher, which takes torchrun's names, too."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from eager.processes.rendezvous import free_port
from graphc.launch.job import Job, run

DESCRIPTION = (
    "Start processes that compute together, each with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and "
    "MASTER_PORT in its environment. If one fails, all are ended, and perhaps started anew."
)
ENDPOINT = "--rdzv-endpoint must be host:port, got {given!r}"
PROCESSES = "--processes must be a number from 1 on, or auto, got {given!r}"
NODES = "--nnodes must be a number of machines, got {given!r}: how many there are does not change while a job runs"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of the launcher."""

    def add(*names: str, **about: object) -> None:
        both = [n for name in names for n in dict.fromkeys((name, f"--{name[2:].replace('-', '_')}"))]
        parser.add_argument(*(both if names[0].startswith("--") else names), **about)  # type: ignore[arg-type]

    add("--processes", "--nproc-per-node", dest="processes", default="1", metavar="N",
        help="processes on this machine; auto, cpu: one for each core")  # fmt: skip
    add("--nnodes", default="1", metavar="N", help="machines")
    add("--node-rank", type=int, default=0, metavar="K", help="which of the machines this is, from 0 on")
    add("--master-addr", default=None, metavar="HOST", help="the machine of rank 0 (127.0.0.1)")
    add("--master-port", type=int, default=None, metavar="PORT", help="where rank 0 listens (a free port)")
    add("--standalone", action="store_true", help="one machine, which chooses a port")
    add("--max-restarts", type=int, default=0, metavar="N", help="how often to start anew after a failure")
    add("--timeout", type=float, default=None, metavar="S", help="seconds that a collective may wait for the others")
    add("--grace", type=float, default=5.0, metavar="S", help="seconds between the request to end and the end")
    add("--torch", action="store_true", help="`import torch` gives eager in the program")
    parser.add_argument("-m", "--module", action="store_true", help="the program is the name of a module")
    add("--rdzv-endpoint", default="", metavar="HOST:PORT", help="the same as --master-addr and --master-port")
    add("--rdzv-backend", default="", metavar="NAME", help="has no effect: processes meet where rank 0 listens")
    add("--rdzv-id", default="", metavar="NAME", help="a name for the job")
    parser.add_argument("program", help="a file of Python")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program is given")


def job_of(given: argparse.Namespace) -> Job:
    """The job that the options ask for. ValueError for what makes no sense."""
    name = str(given.processes)
    if name not in ("auto", "cpu", "gpu") and not (name.isdigit() and int(name)):
        raise ValueError(PROCESSES.format(given=name))
    local = int(name) if name.isdigit() else os.cpu_count() or 1
    if not given.nnodes.isdigit():
        low, _, high = given.nnodes.partition(":")
        if low != high:
            raise ValueError(NODES.format(given=given.nnodes))
    nodes = int(given.nnodes.partition(":")[0])
    address, port = given.master_addr, given.master_port
    if given.rdzv_endpoint:
        host, _, number = given.rdzv_endpoint.partition(":")
        if number and not number.isdigit():
            raise ValueError(ENDPOINT.format(given=given.rdzv_endpoint))
        address, port = address or host, port or int(number or 0) or None
    if given.standalone:
        address = port = None
    if not 0 <= given.node_rank < nodes:
        raise ValueError(f"--node-rank must be from 0 on and less than --nnodes, {nodes}, got {given.node_rank}")
    if given.max_restarts < 0:
        raise ValueError(f"--max-restarts must be from 0 on, got {given.max_restarts}")
    if nodes > 1 and (address is None or port is None):
        raise ValueError("a job on several machines needs --master-addr and --master-port")
    return Job(
        given.program, tuple(given.arguments), given.module, given.torch, local, nodes, given.node_rank,
        address or "127.0.0.1", port, given.max_restarts, given.timeout, given.grace,
        given.rdzv_id or f"graphc-{os.getpid()}-{free_port()}",
    )  # fmt: skip


def run_options(given: argparse.Namespace) -> int:
    """Run the job that the options ask for. Returns its exit status."""
    return run(job_of(given))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: that of the process that failed first, 128 + n for a signal."""
    parser = argparse.ArgumentParser(prog="graphc.launch", description=DESCRIPTION)
    add_options(parser)
    given = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    try:
        job = job_of(given)
    except ValueError as error:
        parser.error(str(error))
    return run(job)
