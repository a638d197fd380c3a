"""What training programs use around tensors: `data` (loaders), `tensorboard` (a log that TensorBoard shows)."""

from eager.utils import data

__all__ = ["data"]


def __getattr__(name: str) -> object:
    if name == "dlpack":
        import importlib

        return importlib.import_module("eager.utils.dlpack")
    raise AttributeError(f"module 'eager.utils' has no attribute '{name}'")
