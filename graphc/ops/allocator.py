"""Memory that arrays give back stays with the process, for the next arrays.

The C library gives a block of 128 KiB or more back to the system as soon as it is freed. The system clears each page of
the next one anew, which takes longer than computing what is written there. The library raises this limit to 32 MiB by
itself once a block of that size has been freed; here that is so from the start.
"""

from __future__ import annotations

import ctypes
import os
import sys

LARGEST = 32 << 20  # bytes: of a block that is kept, the most that the library allows
MOST = 512 << 20  # bytes that are kept,
SHARE = 16  # or this part of the machine's memory, whichever is less
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as <malloc.h> numbers them
# what users set to choose for themselves
CHOICES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Keep what is freed, unless the environment says how. Returns whether the C library is one that can: glibc."""
    if sys.platform != "linux" or any(name in os.environ for name in CHOICES):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return bool(mallopt(MMAP_THRESHOLD, LARGEST) and mallopt(TRIM_THRESHOLD, min(MOST, memory // SHARE)))
