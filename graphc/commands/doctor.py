"""`graphc doctor`: what a report of a bug has to say of the machine, and what is missing."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from argparse import ArgumentParser, Namespace
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from graphc.commands.exit_codes import FINE
from graphc.display import Section, Table
from graphc.display.as_text import text
from graphc.display.terminal import colors, columns
from graphc.errors import GraphcError
from graphc.ops.threads import cores, pool

PACKAGES = ("numpy", "scipy", "networkx", "jax", "jaxlib", "ml_dtypes", "torch")
SETTINGS = ("GRAPHC_", "JAX_", "XLA_", "OMP_", "OPENBLAS_", "MKL_", "NPY_")
# extra -> what it brings
EXTRAS = {
    "compare": "charts, a progress bar, strategies for Hypothesis",
    "demo": "examples/digits.py",
    "export": "graphc.export, graphc.stablehlo",
    "safetensors": "torch.save, torch.load, and .safetensors files",
    "tensorboard": "torch.utils.tensorboard.SummaryWriter, graphc.to_graphdef",
    "dev": "what the tests need",
    "torch": "PyTorch as the judge: graphc run --compare-with-torch, tests",
}


def add_doctor(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def doctor(given: Namespace) -> int:
    found = findings()
    if given.json:
        print(json.dumps(found, indent=1))
        return FINE
    print(text([Section(title, [Table([*part.items()])]) for title, part in found.items()], columns(), colors()))
    return FINE


def findings() -> dict[str, dict[str, Any]]:
    """title -> what -> what was found"""
    from graphc import __version__

    return {
        "versions": {
            "graphc": __version__,
            "Python": f"{platform.python_version()} ({sys.executable})",
            **{name: _version(name) or "not installed" for name in PACKAGES},
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cores": f"{cores()} of {os.cpu_count()}",
            "devices": _devices(),
            "BLAS": _blas(),
        },
        "cache of compiled programs": _cache(),
        "extras": {name: _extra(name, brings) for name, brings in EXTRAS.items()},
        "settings": {name: value for name, value in sorted(os.environ.items()) if name.startswith(SETTINGS)}
        or {"none": "no environment variable of graphc, JAX, XLA or BLAS is set"},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _devices() -> str:
    from graphc.lowering.devices import devices

    try:
        return ", ".join(devices())
    except RuntimeError as error:  # JAX's plugin for a device that is not there
        return f"JAX finds none: {error}"


def _blas() -> str:
    import numpy as np

    configuration: Any = np.show_config(mode="dicts")
    library = configuration["Build Dependencies"]["blas"]
    threads = pool("numpy")
    count = f"{threads.get()} threads" if threads else "an unknown number of threads"
    return f"{library['name']} {library['version']}, {count}"


def _cache() -> dict[str, str]:
    from graphc.lowering.cache import cache_directory

    folder = cache_directory()
    if folder is None:
        return {"folder": "none: GRAPHC_CACHE=0"}
    try:
        sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()]
    except FileNotFoundError:
        return {"folder": f"{folder} (not there yet)"}
    except OSError as error:
        return {"folder": f"{folder}: {error.strerror}"}
    return {"folder": str(folder), "size": f"{sum(sizes) / 2**20:.1f} MiB in {len(sizes)} programs"}


def _extra(name: str, brings: str) -> str:
    """Whether the packages of an extra are there, and what it brings."""
    try:
        lines = requires("graphc") or []
    except PackageNotFoundError:
        raise GraphcError("graphc is not installed here. Remedy: pip install graphc, or pip install -e .") from None
    of_extra = [line for line in lines if re.search(rf"extra == ['\"]{name}['\"]", line)]
    packages = [match[0] for line in of_extra if (match := re.match(r"[\w.-]+", line))]
    missing = [package for package in packages if not _version(package)]
    state = f"missing {', '.join(missing)} (pip install 'graphc[{name}]')" if missing else "there"
    return f"{state}: {brings}"
