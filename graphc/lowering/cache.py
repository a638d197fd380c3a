"""The cache of compiled programs on disk, which JAX keeps: a later process compiles a known program in no time.

It lies in the user's cache directory unless GRAPHC_CACHE_DIR names another; GRAPHC_CACHE=0 turns it off. A directory
that the user has configured in JAX is left as it is.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from graphc.lowering.loading import jax

_WORTHWHILE = 0.25  # seconds of compilation, from which on a program is kept


def cache_directory() -> Path | None:
    """Where compiled programs are kept; None if they are not."""
    if os.environ.get("GRAPHC_CACHE", "") == "0":
        return None
    if named := os.environ.get("GRAPHC_CACHE_DIR"):
        return Path(named).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "graphc" / "xla"


def enable_cache() -> None:
    """Let JAX keep what it compiles, unless the user has said where."""
    directory = cache_directory()
    if directory is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: everything works, only slower the next time
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _WORTHWHILE)


@contextlib.contextmanager
def uncached() -> Iterator[None]:
    """Context: programs are compiled although the cache has them, so that this can be timed. For the whole process."""
    from jax.experimental.compilation_cache import compilation_cache

    before = getattr(jax.config, "jax_enable_compilation_cache", True)
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # JAX looks at the option once
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


enable_cache()
