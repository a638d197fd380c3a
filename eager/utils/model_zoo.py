"""`torch.utils.model_zoo`: nothing is downloaded here."""

from __future__ import annotations

from typing import Any, NoReturn


def load_url(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: download the file yourself, and read it with `torch.load`."""
    raise NotImplementedError(
        "torch.utils.model_zoo.load_url downloads weights, which this library never does. Download the file yourself, "
        "and read it with torch.load or safetensors."
    )


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # torchvision takes it from here
        from tqdm import tqdm  # pyright: ignore[reportMissingModuleSource]

        return tqdm
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
