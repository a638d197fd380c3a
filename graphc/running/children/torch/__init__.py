"""`import torch` in a child of a process in which `torch` means `eager`: so it does here.

Child processes have the folder above on their path. There, this file is the package `torch`.
"""

import sys
from importlib import import_module, util
from pathlib import Path

if __name__ == "torch":  # not where a tool imports it as a part of graphc
    if util.find_spec("graphc") is None:
        sys.path.append(str(Path(__file__).resolve().parents[4]))
    import_module("graphc.running.torch_names").torch_names()
    sys.modules["torch"] = import_module("eager")  # what the import that runs this file returns
