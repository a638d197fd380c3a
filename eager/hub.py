"""`torch.hub`: nothing is downloaded here."""

from __future__ import annotations

import os
import re
from typing import Any, NoReturn
from urllib.parse import urlparse  # noqa: F401  (a name that timm takes from here)

NO_DOWNLOADS = (
    "torch.hub.{} downloads code or weights, which this library never does. Download the file yourself, and read it "
    "with torch.load or safetensors."
)
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of the hash in the name of a file
_folder: str | None = None


def _get_torch_home() -> str:
    home = os.environ.get("TORCH_HOME", os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch"))
    return os.path.expanduser(home)


def get_dir() -> str:
    """The folder for downloads: what was set, or "hub" in TORCH_HOME (by default ~/.cache/torch)."""
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def set_dir(d: Any) -> None:
    """Set what `get_dir` gives."""
    global _folder
    _folder = os.path.expanduser(d)


def _refusal(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(NO_DOWNLOADS.format(name))

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises NotImplementedError: nothing is downloaded."
    return refuse


download_url_to_file, load_state_dict_from_url = _refusal("download_url_to_file"), _refusal("load_state_dict_from_url")
help, list, load = (_refusal(name) for name in ("help", "list", "load"))
