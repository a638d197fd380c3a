"""Verdicts: how much two correct runs may differ, by rounding, by machine arithmetic, by convention."""
