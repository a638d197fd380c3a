"""`torch.hub`: nothing is downloaded here."""

from __future__ import annotations

import os
from typing import Any, NoReturn

NO_DOWNLOADS = (
    "torch.hub.{} downloads code or weights, which this library never does. Download the file yourself, and read it "
    "with torch.load or safetensors."
)
_folder: str | None = None


def get_dir() -> str:
    """The folder for downloads: what was set, or "hub" in TORCH_HOME (by default ~/.cache/torch)."""
    home = os.environ.get("TORCH_HOME", os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch"))
    return os.path.join(os.path.expanduser(home), "hub") if _folder is None else _folder


def set_dir(d: Any) -> None:
    """Set what `get_dir` gives."""
    global _folder
    _folder = os.path.expanduser(d)


def _refusal(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(NO_DOWNLOADS.format(name))

    refuse.__name__ = name
    refuse.__doc__ = "Raises NotImplementedError: nothing is downloaded."
    return refuse


download_url_to_file, load_state_dict_from_url = _refusal("download_url_to_file"), _refusal("load_state_dict_from_url")
help, list, load = (_refusal(name) for name in ("help", "list", "load"))
