"""The eager engine beside PyTorch and other Python engines. Run: python benchmarks/eager_engine.py [word in a name]

One thread, forward and backward, interleaved, medians of the ratios within rounds. PyTorch needs the extra `torch`;
peers are measured where they are installed (pip install autograd mygrad tinygrad).
"""

from __future__ import annotations

import sys

from timing import interleaved, one_core

one_core()

import eager  # noqa: E402
import peers  # noqa: E402  (after one_core)
from workloads import WORKLOADS, scalar_chain, tiny_chain  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)


def beside_torch(word: str) -> None:
    if torch is None:
        print("PyTorch is not installed: its rows are left out (extra `torch`)")
        return
    for name, make, goal in WORKLOADS:
        if word in name:
            t = interleaved({"torch": make(torch), "eager": make(eager)})
            seconds = t.seconds
            print(
                f"{name:<36} {seconds['torch'] * 1e3:8.3f} ms PyTorch {seconds['eager'] * 1e3:8.3f} ms eager "
                f"{t.ratio['eager']:6.2f}x  (goal <= {goal:.2f})"
            )


def beside_peers() -> None:
    for name, (chain, scalars) in peers.installed():
        for what, make, step in (("tiny chain", tiny_chain, chain), ("Python scalars", scalar_chain, scalars)):
            t = interleaved({"eager": make(eager), name: step}, rounds=15)
            print(f"{what:<16} {name:<14} takes {t.ratio[name]:6.1f}x eager's time  (goal >= 5)")


if __name__ == "__main__":
    beside_torch(sys.argv[1] if len(sys.argv) > 1 else "")
    if len(sys.argv) == 1:
        beside_peers()
