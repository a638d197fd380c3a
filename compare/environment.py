"""Where a report comes from: versions, processor, options and time. No names of hosts, users or files."""

from __future__ import annotations

import datetime
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import graphc
from graphc.lowering.devices import devices
from graphc.ops.threads import cores

PACKAGES = ("numpy", "scipy", "networkx", "jax", "jaxlib", "torch")
OPTIONS = (
    "XLA_FLAGS", "JAX_PLATFORMS", "JAX_ENABLE_X64", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES",
)  # fmt: skip


def environment() -> dict[str, str]:
    """What the figures of a report depend on, by name. Packages that are not installed and options not set are left
    out."""
    return {
        "graphc": graphc.__version__,
        "Python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name))},
        "processor": _processor(),
        "cores": f"{cores()} of {os.cpu_count()}",
        **({"load average": f"{os.getloadavg()[0]:.1f}"} if hasattr(os, "getloadavg") else {}),
        "devices": ", ".join(devices()),
        **{name: _without_paths(os.environ[name]) for name in OPTIONS if name in os.environ},
        "system": f"{platform.system()} {platform.machine()}",
        "time": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"model name\s*:\s*(.+)", information.read_text(encoding="utf-8"))
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def _without_paths(value: str) -> str:
    return re.sub(r"=\S*[/\\]\S*", "=(a path)", value)
