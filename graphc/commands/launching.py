"""`graphc launch`: the processes of a job."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from graphc.launch.job import run as run_job
from graphc.launch.options import add_options, job_of


def add_launch(parser: ArgumentParser) -> None:
    """The options of `graphc launch`, which are those of `python -m graphc.launch`."""
    add_options(parser)


def run(given: Namespace) -> int:
    """Run the job. Returns its exit status."""
    return run_job(job_of(given))
