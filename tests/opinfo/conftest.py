"""The survey has no tests of its own: pytest, which looks for examples in docstrings, would load PyTorch's list."""

collect_ignore = ["survey.py", "translate.py"]
