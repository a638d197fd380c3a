"""Control flow as calls: `torch.cond`, `torch.while_loop`, and PyTorch's prototypes `scan`, `associative_scan`, `map`.

They are those of `graphc`, with PyTorch's arguments: loops and branches of a compiled program, and gradients in both
modes.
"""

from eager._higher_order_ops.associative_scan import associative_scan
from eager._higher_order_ops.cond import cond
from eager._higher_order_ops.map import map
from eager._higher_order_ops.scan import scan
from eager._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
