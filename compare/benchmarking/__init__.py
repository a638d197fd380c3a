"""`bench` and `scaling`: what each mode costs, from the first call on, and how that grows with the size."""

from compare.benchmarking.bench import bench
from compare.benchmarking.result import BOTH, FORWARD, BenchReport, Timing
from compare.benchmarking.scaling import ScalingReport, scaling
from compare.checking.findings import DisagreementError

__all__ = ["BOTH", "FORWARD", "BenchReport", "DisagreementError", "ScalingReport", "Timing", "bench", "scaling"]
