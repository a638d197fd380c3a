"""Random programs: how they are written down, made, and checked by the thousand."""

from compare.fuzzing.batches import Failure
from compare.fuzzing.campaign import FuzzReport, fuzz
from compare.fuzzing.generator import generate
from compare.fuzzing.program import Input, Program, Statement

__all__ = ["Failure", "FuzzReport", "Input", "Program", "Statement", "fuzz", "generate"]
