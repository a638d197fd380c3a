"""Recurrent cells: one step of a recurrent layer."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.nn import functional as F
from eager.nn.layer import unusual
from eager.nn.module import Module
from eager.nn.modules.rnn import State, gru_step, lstm_step, relu_step, tanh_step
from eager.nn.parameters import add_parameters, uniform_init

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What the cells share. Weights are drawn uniformly from +-1 / sqrt(hidden_size)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        biases = (rows,) if bias else None
        add_parameters(
            self, device, dtype, weight_ih=(rows, input_size), weight_hh=(rows, hidden_size), bias_ih=biases,
            bias_hh=biases,
        )  # fmt: skip
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        uniform_init(self, self.hidden_size)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}{unusual(self, bias=True)}"

    def _prepared(self, input: Tensor, state: State | None, parts: int) -> tuple[Tensor, State, bool]:
        """Input and state with a batch dimension. Raises PyTorch's errors for shapes that do not fit."""
        name, ndim = type(self).__name__, len(input._d.shape)
        if ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {ndim}D instead")
        batched = ndim == 2
        for i, part in enumerate(state or ()):
            if len(part._d.shape) not in (1, 2):
                which = "hidden" if parts == 1 else f"hx[{i}]"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {len(part._d.shape)}D instead")
        x = input if batched else E.reshape(input, shape=(1, *input._d.shape))
        if state is None:
            zeros = E.full(shape=(x._d.shape[0], self.hidden_size), value=0, dtype=x._dtype())
            state = (zeros,) * parts
        elif not batched:
            state = tuple(E.reshape(part, shape=(1, *part._d.shape)) for part in state)
        if x._d.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x._d.shape[1]} expected {self.input_size}")
        for i, part in enumerate(state):
            if part._d.shape[0] != x._d.shape[0]:
                raise RuntimeError(
                    f"Input batch size {x._d.shape[0]} doesn't match hidden{i} batch size {part._d.shape[0]}"
                )
            if part._d.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {part._d.shape[1]}, expected {self.hidden_size}"
                )
        return x, state, batched

    def _stepped(self, step: Any, input: Tensor, state: State | None, parts: int = 1) -> State:
        x, state, batched = self._prepared(input, state, parts)
        gates = F.linear(x, self.weight_ih, self.bias_ih), F.linear(state[0], self.weight_hh, self.bias_hh)
        result = step(*gates, state)
        return result if batched else tuple(E.reshape(part, shape=(self.hidden_size,)) for part in result)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu with `nonlinearity`."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:
        return super().extra_repr() + unusual(self, nonlinearity="tanh")

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(N, input_size) and (N, hidden_size) -> (N, hidden_size)."""
        steps = {"tanh": tanh_step, "relu": relu_step}
        if self.nonlinearity not in steps:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._stepped(steps[self.nonlinearity], input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """Long short-term memory."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(N, input_size) and states (h, c) -> the next (h, c)."""
        h, c = self._stepped(lstm_step, input, hx, 2)
        return h, c


class GRUCell(RNNCellBase):
    """Gated recurrent unit."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(N, input_size) and (N, hidden_size) -> (N, hidden_size)."""
        return self._stepped(gru_step, input, None if hx is None else (hx,))[0]
