"""`torch.nn.attention`."""

from graphc.lazy import lazy

__getattr__, __dir__ = lazy(__name__, {}, ("flex_attention",))
