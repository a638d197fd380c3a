"""`torch.xpu`: the XPUs that JAX has. Without one, queries answer, and what needs a device raises AssertionError."""

from __future__ import annotations

from eager.cuda.devices import functions

globals().update(functions("xpu"))
