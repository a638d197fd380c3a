"""Functions of NumPy arrays inside programs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ALONE = """
import os
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # before XLA counts its threads
import eager as torch, graphc
x = torch.linspace(0.1, 9, 100_000)
f = graphc.compile(lambda x: (torch.special.bessel_j0(x), torch.special.bessel_y1(x)))
for compiled, eagerly in zip(f(x), (torch.special.bessel_j0(x), torch.special.bessel_y1(x))):
    assert torch.equal(compiled, eagerly)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to processors")
def test_a_process_with_one_processor_does_not_wait_for_itself():
    ran = subprocess.run([sys.executable, "-c", ALONE], timeout=200, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
