"""Forked pools, executors and DataLoader workers that call compiled functions. Prints "fine"."""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import eager as torch
import graphc
from eager.utils.data import DataLoader, Dataset
from tests.compile.forks import child

JAX_WARNING = r"os\.fork\(\) was called"


@graphc.compile
def doubled(x: Any) -> Any:
    return (x @ x) * 2


def in_worker(k: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return doubled(torch.full((k + 1, k + 1), 1.0))[0, 0].item()


class Doubled(Dataset):
    """Samples that a compiled function makes."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, k: int) -> float:
        return in_worker(k)


def compiles() -> None:
    """In a child of a process that has not used XLA, which is as good as any other."""
    assert doubled(torch.ones(2, 2)).tolist() == [[4.0] * 2] * 2
    assert str(doubled.explain()).startswith("doubled: 1 program")


def main() -> None:
    assert not (problem := child(compiles)), problem
    expected = [2.0 * (k + 1) for k in range(6)]
    compiles()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", JAX_WARNING, RuntimeWarning)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(in_worker, range(6)) == expected
        with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as executor:
            assert list(executor.map(in_worker, range(6))) == expected
    batches = DataLoader(Doubled(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    assert [x for batch in batches for x in batch.tolist()] == expected  # without a warning of JAX's
    print("fine")


if __name__ == "__main__":
    main()
