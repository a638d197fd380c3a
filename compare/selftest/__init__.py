"""Does the harness find what it is there to find? Planted faults and clean random programs."""

from compare.selftest.campaign import SelftestReport, selftest

__all__ = ["SelftestReport", "selftest"]
