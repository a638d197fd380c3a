"""`torch.lstm`, `torch.gru_cell` and their like: recurrent layers and cells as functions of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.core.tensor import Tensor
from eager.functional.naming import called
from eager.functional.parsing import no_overload
from eager.nn import functional as F
from eager.nn.module import Module
from eager.nn.modules.packed import PackedSequence
from eager.nn.modules.rnn import STEPS, RNNBase, State


class _Given(RNNBase):
    """A recurrent layer with weights that are given, as a list of each layer's and direction's."""

    def __init__(
        self, mode: str, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ):  # fmt: skip
        Module.__init__(self)
        self.mode, self.bias, self.num_layers, self.dropout = mode, has_biases, num_layers, float(dropout)
        self.bidirectional, self.batch_first, self.training = bidirectional, batch_first, train
        self.input_size, self.hidden_size = params[0]._d.shape[1], params[1]._d.shape[1]
        self.proj_size = 0
        count = num_layers * (2 if bidirectional else 1)
        each = len(params) // count
        if mode == "LSTM" and each == (5 if has_biases else 3):
            self.proj_size, self.hidden_size = params[each - 1]._d.shape
        self._given = [list(params[k * each : (k + 1) * each]) for k in range(count)]

    def _weights(self, number: int) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]:
        w_ih, w_hh, *rest = self._given[number]
        b_ih, b_hh = rest[:2] if self.bias else (None, None)
        return w_ih, w_hh, b_ih, b_hh, rest[-1] if self.proj_size else None


def _layer(name: str, mode: str) -> Any:
    several = mode == "LSTM"

    @called(
        name,
        "(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> (output, *state), "
        "or with (data, batch_sizes) of a packed sequence in place of input.",
        "torch",
    )
    def function(input: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        if len(arguments) not in (7, 8) or not isinstance(input, Tensor):
            raise no_overload(name, (input, *arguments))
        if isinstance(arguments[1], (list, tuple)) and isinstance(arguments[2], bool):
            hx, params, *options = arguments
            packed = None
        else:  # (data, batch_sizes, hx, params, ...): a packed sequence
            sizes, hx, params, *options = arguments
            packed, options = PackedSequence(input, sizes, None, None), [*options, False]
        layer = _Given(mode, params, *options)
        output, ends = layer._forward(input if packed is None else packed, tuple(hx) if several else (hx,))
        return (output if packed is None else output.data, *ends)

    return function


lstm, gru = _layer("lstm", "LSTM"), _layer("gru", "GRU")
rnn_tanh, rnn_relu = _layer("rnn_tanh", "RNN_TANH"), _layer("rnn_relu", "RNN_RELU")


def _cell(name: str, mode: str) -> Any:
    several = mode == "LSTM"

    @called(name, "One step of the layer.", "torch")
    def function(
        input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Any:
        state: State = tuple(hx) if several else (hx,)
        found = STEPS[mode](F.linear(input, w_ih, b_ih), F.linear(state[0], w_hh, b_hh), state)
        return found if several else found[0]

    return function


lstm_cell, gru_cell = _cell("lstm_cell", "LSTM"), _cell("gru_cell", "GRU")
rnn_tanh_cell, rnn_relu_cell = _cell("rnn_tanh_cell", "RNN_TANH"), _cell("rnn_relu_cell", "RNN_RELU")
