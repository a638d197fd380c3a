"""`torchrun`: `python -m graphc launch` with `import torch` as eager. As `torch.distributed.run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Start the processes of a job, with the options of torchrun. SystemExit with the status of the job."""
    from graphc.launch.options import main as launch

    status = launch(["--torch", *(sys.argv[1:] if args is None else args)])
    if status:
        raise SystemExit(status)


if __name__ == "__main__":
    main()
