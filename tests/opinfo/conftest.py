"""Without PyTorch there is nothing to collect here but the test, which says so."""

from importlib.util import find_spec

if find_spec("torch") is None or find_spec("expecttest") is None:
    collect_ignore = ["survey.py", "translate.py"]
