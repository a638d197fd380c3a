"""Modules of PyTorch that libraries import names from at their top, and use later if at all: each name is a class.

The class is for `isinstance` and as a base class; to make an instance is NotImplementedError. Without them a library
that can also run on many machines could not be imported by those who run it on one.
"""

from __future__ import annotations

from importlib.abc import Loader
from types import ModuleType
from typing import Any, NoReturn, final

MODULES = {  # package -> the modules of it
    "": "ao",
    "ao": "nn quantization",
    "ao.nn": "intrinsic quantized",
    "ao.quantization": "qconfig quantize_fx",
    "distributed": "algorithms optim",
    "distributed.algorithms": "_checkpoint ddp_comm_hooks join model_averaging",
    "distributed.algorithms._checkpoint": "checkpoint_wrapper",
    "distributed.algorithms.model_averaging": "averagers",
    "distributed.checkpoint": "_consolidate_hf_safetensors default_planner filesystem format_utils hf_storage metadata "
    "optimizer planner state_dict_loader",
    "fx": "graph_module",
    "onnx": "operators symbolic_opset9 symbolic_opset10 symbolic_opset11 symbolic_opset12 symbolic_opset13 utils",
    "distributed.fsdp": "api fully_sharded_data_parallel sharded_grad_scaler wrap",
}
REFUSED = "torch.{}.{} is a placeholder, which libraries can import: what it does in PyTorch is not here."


def known(path: str) -> bool:
    """Whether "distributed.optim" is one of them."""
    package, _, name = path.rpartition(".")
    return name in MODULES.get(package, "").split()


@final
class Placeholders(Loader):
    """Makes a module in which each name is a class."""

    def __init__(self, path: str):
        self._path = path

    def exec_module(self, module: ModuleType) -> None:
        def __getattr__(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
            vars(module)[name] = made = _placeholder(self._path, name)
            return made

        vars(module)["__getattr__"] = __getattr__


def _placeholder(path: str, name: str) -> type:
    text = REFUSED.format(path, name)

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(text)

    return type(name, (), {"__new__": refuse, "__doc__": text, "__module__": f"torch.{path}"})
