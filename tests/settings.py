"""The suite as other machines would run it: one table of settings, and a command that runs pytest under each.

    python -m tests.settings [setting ...] [-- pytest arguments]

Without names, all of `SETTINGS`; without arguments, the whole suite. A setting is environment variables, which NumPy,
OpenBLAS, XLA, PyTorch and `tests/conftest.py` read when they are loaded. Exits with 1 if any run fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

# Names of NumPy 2.4; one that a build or processor does not have is left out (`numpy.show_runtime()` lists them).
_NO_AVX512 = "X86_V4 AVX512_ICL AVX512_SPR"
_NO_AVX2 = f"X86_V3 {_NO_AVX512}"

SETTINGS: Mapping[str, Mapping[str, str]] = {
    # as unlike the machine at hand as one setting can be: most of what any other finds fails here
    "oldest": {
        "NPY_DISABLE_CPU_FEATURES": _NO_AVX2, "OPENBLAS_CORETYPE": "Prescott", "XLA_FLAGS": "--xla_cpu_max_isa=AVX",
        "ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "1", "GRAPHC_TEST_ORDER": "1", "GRAPHC_TEST_SEED": "1",
    },
    "numpy without AVX512": {"NPY_DISABLE_CPU_FEATURES": _NO_AVX512},
    "numpy without AVX2": {"NPY_DISABLE_CPU_FEATURES": _NO_AVX2},
    "openblas Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "openblas Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "openblas SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "openblas Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "xla AVX2": {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2"},
    # XLA has no conversion of float16 there: `tests/conftest.py` skips what needs it
    "xla SSE4_2": {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
    "pytorch AVX2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "1 thread": {"OMP_NUM_THREADS": "1"},
    "2 threads": {"OMP_NUM_THREADS": "2"},
    "another order": {"GRAPHC_TEST_ORDER": "2"},
    "another seed": {"GRAPHC_TEST_SEED": "2"},
    "busy": {"GRAPHC_TEST_LOAD": "2"},
}  # fmt: skip


def environment(name: str) -> dict[str, str]:
    """The variables of a setting. NumPy warns of features that the processor does not have: those are left out."""
    variables = dict(SETTINGS[name])
    if "NPY_DISABLE_CPU_FEATURES" in variables:
        kept = [f for f in variables["NPY_DISABLE_CPU_FEATURES"].split() if f in _features()]
        variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(kept)
    return variables


def _features() -> list[str]:
    """The features of this processor that NumPy has code for and that can be turned off."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__[name]]


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Context: as many processes count, and do nothing else."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main(arguments: Sequence[str]) -> int:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    names, options = arguments[:end], arguments[end + 1 :]
    if unknown := [name for name in names if name not in SETTINGS]:
        print(f"no setting {unknown[0]!r}; there are: {', '.join(SETTINGS)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or SETTINGS:
        variables = environment(name)
        print(f"== {name}: {' '.join(f'{k}={v!r}' for k, v in variables.items())}", flush=True)
        with load(int(variables.get("GRAPHC_TEST_LOAD", "0"))):
            done = subprocess.run([sys.executable, "-m", "pytest", *options], env={**os.environ, **variables})
        if done.returncode:
            failed.append(name)
    print(f"== failed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
