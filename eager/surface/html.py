"""What a notebook shows of a tensor."""

from __future__ import annotations

import numpy as np

from eager.core.interpreter import current_interpreter
from eager.core.meta import is_meta
from eager.core.tensor import Tensor
from eager.surface.printing import formatter, tensor_text
from graphc.display import Block, Code, Remark, Table
from graphc.display.as_html import fragment

ROWS, COLUMNS = 24, 16  # of the largest tensor that is shown as a table


def tensor_html(t: Tensor) -> str:
    """A small 2-d tensor as a table, with the numbers as `repr` has them; any other as `repr` shows it."""
    array = current_interpreter().values_shown(t) if t._d.__class__ is np.ndarray and not is_meta(t) else None
    small = array is not None and array.ndim == 2 and 0 < array.shape[0] <= ROWS and 0 < array.shape[1] <= COLUMNS
    if array is None or not small or array.dtype.kind not in "biuf":
        return fragment([Code(tensor_text(t))])
    show, _ = formatter(array)
    rows = [(str(k), *(show(value).strip() for value in row)) for k, row in enumerate(array.tolist())]
    history = "" if t.grad_fn is None else f", grad_fn=<{t.grad_fn.name()}>"
    about = f"{list(t.shape)} {t.dtype}{history or ', requires_grad=True' * t.requires_grad}"
    blocks: list[Block] = [Table(rows, ("", *map(str, range(array.shape[1])))), Remark(about, "note")]
    return fragment(blocks)
