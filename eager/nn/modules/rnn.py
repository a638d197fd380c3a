"""Recurrent layers and cells.

Run at once, a layer projects the inputs of all time steps in one matrix product; what is left for each step is the
hidden state's. A program has the steps as one loop instead.
"""

from __future__ import annotations

import warnings
from typing import Any

from eager.core.autocast import autocast_state
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.joining import cat, chunk, select, stack, unbind
from eager.nn import functional as F
from eager.nn.layer import Layer, unusual
from eager.nn.modules.packed import PackedSequence
from eager.nn.parameters import guard_training, new_parameter, uniform_init
from graphc.ops.dtypes import FLOAT32

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

State = tuple[Tensor, ...]

LOOP = 4  # steps: a program has a loop for as many, or more

GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


# one step: gates that come from the input, gates that come from the hidden state
def tanh_step(x: Tensor, h: Tensor, state: State) -> State:
    """tanh of the sum."""
    return (E.tanh(E.add(x, h)),)


def relu_step(x: Tensor, h: Tensor, state: State) -> State:
    """relu of the sum."""
    return (E.relu(E.add(x, h)),)


def lstm_step(x: Tensor, h: Tensor, state: State) -> State:
    """Input, forget, cell and output gates: (hidden, cell)."""
    i, f, g, o = chunk(E.add(x, h), 4, -1)
    cell = E.add(E.mul(E.sigmoid(f), state[1]), E.mul(E.sigmoid(i), E.tanh(g)))
    return E.mul(E.sigmoid(o), E.tanh(cell)), cell


def gru_step(x: Tensor, h: Tensor, state: State) -> State:
    """Reset, update and new gates."""
    (xr, xz, xn), (hr, hz, hn) = chunk(x, 3, -1), chunk(h, 3, -1)
    reset, update = E.sigmoid(E.add(xr, hr)), E.sigmoid(E.add(xz, hz))
    new = E.tanh(E.add(xn, E.mul(reset, hn)))
    return (E.add(new, E.mul(update, E.sub(state[0], new))),)


STEPS = {"RNN_TANH": tanh_step, "RNN_RELU": relu_step, "LSTM": lstm_step, "GRU": gru_step}


class RNNBase(Layer):
    """What RNN, LSTM and GRU share. Weights are drawn uniformly from +-1 / sqrt(hidden_size)."""

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Any = None, dtype: Any = None):  # fmt: skip
        _check_options(mode, hidden_size, num_layers, dropout, proj_size)
        self._keep(locals())
        self.bias, self.dropout = bias, float(dropout)
        rows = GATES[mode.partition("_")[0]] * hidden_size
        directions, out = (2 if bidirectional else 1), proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else out * directions
            for suffix in ("", "_reverse")[:directions]:
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    self.register_parameter(name, new_parameter(shape, device, dtype))
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def _as_pytorch_has_it(self, state: Any) -> Any:
        if not isinstance(state, dict):
            return state
        flat = {name: getattr(self, name) for name in ("_flat_weights_names", "_flat_weights")}
        return {**super()._as_pytorch_has_it(state), **flat}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in ("_flat_weights_names", "_flat_weights"):
            self.__dict__.pop(name, None)

    def reset_parameters(self) -> None:
        """Draw new values."""
        uniform_init(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: there is no GPU memory to arrange."""

    def extra_repr(self) -> str:
        usual: Any = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        return f"{self.input_size}, {self.hidden_size}{unusual(self, **usual, bidirectional=False)}"

    def _sizes(self) -> tuple[int, ...]:
        """The last dimension of each part of the state."""
        return (self.proj_size or self.hidden_size, self.hidden_size)[: 2 if self.mode == "LSTM" else 1]

    def _zeros(self, batch: int, like: Tensor) -> State:
        count = self.num_layers * (2 if self.bidirectional else 1)
        return tuple(E.full(shape=(count, batch, size), value=0, dtype=like._dtype()) for size in self._sizes())

    def _check_dtype(self, input: Tensor) -> None:
        have, want = input.dtype, self._weights(0)[0].dtype
        if have != want and not autocast_state().enabled:
            raise ValueError(
                f"RNN input dtype ({have}) does not match weight dtype ({want}). Convert input: input.to({want}), or "
                f"convert model: model.to({have})"
            )

    def _check_state(self, state: State, batch: int, unbatched: bool) -> None:
        count = self.num_layers * (2 if self.bidirectional else 1)
        for i, (part, size) in enumerate(zip(state, self._sizes(), strict=True)):
            expected = (count, batch, size)
            if tuple(part._d.shape) != expected:
                which = "hidden" if len(state) == 1 else f"hidden[{i}]"
                raise RuntimeError(f"Expected {which} size {expected}, got {list(part._d.shape)}")

    def _layers(self, rows: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        """Run all layers over the rows of all steps, `sizes[t]` of them at step t; returns (all outputs, state)."""
        directions, ends = (2 if self.bidirectional else 1), []
        whole = autocast_state().enabled and self._one_kernel(rows) and len(set(sizes)) == 1
        steps = mkldnn_rnn_layer if whole else type(self)._steps
        training = guard_training(self)
        for layer in range(self.num_layers):
            if layer and self.dropout:
                rows = F.dropout(rows, self.dropout, training)
            outputs = []
            for direction in range(directions):
                number = layer * directions + direction
                start = tuple(select(part, 0, number) for part in state)
                output, end = steps(self, rows, sizes, start, bool(direction), *self._weights(number))
                outputs.append(output)
                ends.append(end)
            rows = outputs[0] if directions == 1 else cat(outputs, -1)
        return rows, tuple(stack(parts) for parts in zip(*ends, strict=True))

    def _steps(
        self, rows: Tensor, sizes: list[int], start: State, backward: bool, w_ih: Tensor, w_hh: Tensor,
        b_ih: Tensor | None, *others: Any,
    ) -> tuple[Tensor, State]:  # fmt: skip
        """(hidden states of all steps, state at the end) of one layer in one direction."""
        if len(sizes) >= LOOP and all(n == sizes[0] for n in sizes):

            def step(state: State, x: Tensor) -> tuple[State, Tensor]:
                state = self._step(F.linear(x, w_ih, b_ih), state, w_hh, *others)
                return state, state[0]

            xs = E.reshape(rows, shape=(len(sizes), sizes[0], rows._d.shape[1]))
            if autocast_state().enabled and not on_arrays():  # a scan is of one dtype: that in which a step leaves it
                after, _ = step(start, select(xs, 0, 0))
                start = tuple(converted(x, like._dtype()) for x, like in zip(start, after, strict=True))
            found = current_interpreter().scan(step, start, xs, backward)
            if found is not None:
                end, hidden = found
                return E.reshape(hidden, shape=(len(sizes) * sizes[0], hidden._d.shape[2])), end
        pieces = _split(F.linear(rows, w_ih, b_ih), sizes)
        run = self._run_backward if backward else self._run
        hidden, end = run(pieces, start, w_hh, *others)
        return cat(hidden) if len(hidden) > 1 else hidden[0], end

    def _step(self, x: Tensor, state: State, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> State:
        state = STEPS[self.mode](x, F.linear(state[0], w_hh, b_hh), state)
        return state if w_hr is None else (F.linear(state[0], w_hr), state[1])

    def _run(self, pieces: list[Tensor], state: State, *weights: Any) -> tuple[list[Tensor], State]:
        """(hidden state of each step, state at the end); sequences end as the steps narrow."""
        hidden, ended = [], []
        for x in pieces:
            n = x._d.shape[0]
            if n < state[0]._d.shape[0]:
                ended.append(tuple(part[n:] for part in state))  # type: ignore[index]
                state = tuple(part[:n] for part in state)  # type: ignore[index]
            state = self._step(x, state, *weights)
            hidden.append(state[0])
        for rest in reversed(ended):
            state = tuple(cat([a, b]) for a, b in zip(state, rest, strict=True))
        return hidden, state

    def _run_backward(self, pieces: list[Tensor], start: State, *weights: Any) -> tuple[list[Tensor], State]:
        """`_run` from the last step to the first; sequences join as the steps widen."""
        hidden, n = [], pieces[-1]._d.shape[0]
        state = tuple(part if part._d.shape[0] == n else part[:n] for part in start)  # type: ignore[index]
        for x in reversed(pieces):
            if x._d.shape[0] > n:
                joined = tuple(part[n : x._d.shape[0]] for part in start)  # type: ignore[index]
                state, n = tuple(cat([a, b]) for a, b in zip(state, joined, strict=True)), x._d.shape[0]
            state = self._step(x, state, *weights)
            hidden.append(state[0])
        return hidden[::-1], state

    def _weights(self, number: int) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """w_ih, w_hh, b_ih, b_hh, w_hr of a layer and direction."""
        w_ih, w_hh, *rest = (getattr(self, name) for name in self._all_weights[number])
        b_ih, b_hh = rest[:2] if self.bias else (None, None)
        return w_ih, w_hh, b_ih, b_hh, rest[-1] if self.proj_size else None

    def _forward(self, input: Any, state: State | None) -> tuple[Any, State]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, state)
        ndim = len(input._d.shape)
        if ndim not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {ndim}D instead")
        self._check_dtype(input)
        batched = ndim == 3
        if state is not None:
            _check_ranks(state, batched, self.mode)
            if not batched:
                state = tuple(E.reshape(s, shape=(s._d.shape[0], 1, s._d.shape[1])) for s in state)
        if input._d.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input._d.shape[-1]}"
            )
        x = input if batched else E.reshape(input, shape=(input._d.shape[0], 1, input._d.shape[1]))
        if self.batch_first and batched:
            x = E.permute(x, dims=(1, 0, 2))
        time, batch, width = x._d.shape
        if not time:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        if state is None:
            state = self._zeros(batch, x)
        self._check_state(state, batch, not batched)
        rows = E.reshape(x, shape=(time * batch, width))
        rows, ends = self._layers(rows, [batch] * time, state)
        output = named(E.reshape(rows, shape=(time, batch, rows._d.shape[1])), self._node(x))
        if self.batch_first and batched:
            turned = E.permute(output, dims=(1, 0, 2))
            output = named(turned, "TransposeBackward0" if self.mode == "LSTM" else "TransposeBackward1")
        if not batched:
            output, *parts = (_squeezed(t) for t in (output, *ends))
            ends = tuple(parts)
        return output, ends

    def _node(self, input: Tensor) -> str:
        """What PyTorch's last operation is called."""
        if self.bidirectional:
            return "CatBackward0"
        return "MkldnnRnnLayerBackward0" if self._one_kernel(input) else "StackBackward0"

    def _one_kernel(self, input: Tensor) -> bool:
        """Whether a layer is one operation of PyTorch's."""
        return self.mode == "LSTM" and not self.proj_size and input._dtype() == FLOAT32

    def _forward_packed(self, packed: PackedSequence, state: State | None) -> tuple[PackedSequence, State]:
        self._check_dtype(packed.data)
        sizes = packed.batch_sizes.tolist()
        if state is None:
            state = self._zeros(sizes[0], packed.data)
        elif packed.sorted_indices is not None:
            state = tuple(E.index(s, packed.sorted_indices, spec=(None, 0)) for s in state)
        self._check_state(state, sizes[0], False)
        rows, ends = self._layers(packed.data, sizes, state)
        if packed.unsorted_indices is not None:
            ends = tuple(
                named(E.index(s, packed.unsorted_indices, spec=(None, 0)), "IndexSelectBackward0") for s in ends
            )
        return PackedSequence(rows, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices), ends


def mkldnn_rnn_layer(
    layers: RNNBase, rows: Tensor, sizes: list[int], start: State, *others: Any
) -> tuple[Tensor, State]:
    """`layers._steps`, as one function: it is autocast as a whole."""
    return layers._steps(rows, sizes, start, *others)


def _squeezed(t: Tensor) -> Tensor:
    return named(E.reshape(t, shape=(t._d.shape[0], t._d.shape[2])), "SqueezeBackward1")


def _split(rows: Tensor, sizes: list[int]) -> list[Tensor]:
    """The rows of each step."""
    if sizes and all(n == sizes[0] for n in sizes):
        return list(unbind(E.reshape(rows, shape=(len(sizes), sizes[0], rows._d.shape[1]))))
    pieces, start = [], 0
    for n in sizes:
        pieces.append(rows[start : start + n])  # type: ignore[index]
        start += n
    return pieces


def _check_ranks(state: State, batched: bool, mode: str) -> None:
    dims = [len(s._d.shape) for s in state]
    kind, want = ("batched 3-D", 3) if batched else ("unbatched 2-D", 2)
    if any(d != want for d in dims):
        if mode == "LSTM":
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {want}-D but got ({dims[0]}-D, {dims[1]}-D) tensors"
            )
        raise RuntimeError(f"For {kind} input, hx should also be {want}-D but got {dims[0]}-D tensor")


def _check_options(mode: str, hidden_size: Any, num_layers: int, dropout: Any, proj_size: int) -> None:
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class _OneState(RNNBase):
    """Layers whose state is one tensor."""

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """(L, N, input_size) and (layers, N, hidden_size) -> (L, N, directions * hidden_size) and the last state."""
        output, (h,) = self._forward(input, None if hx is None else (hx,))
        return output, h


class RNN(_OneState):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu with `nonlinearity`."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 device: Any = None, dtype: Any = None, proj_size: int = 0):  # fmt: skip
        _no_projection(proj_size)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


def _no_projection(proj_size: int) -> None:
    if proj_size > 0:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class GRU(_OneState):
    """Gated recurrent units (Cho et al. 2014)."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, proj_size: int = 0,
    ):  # fmt: skip
        _no_projection(proj_size)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with projections of the hidden state if `proj_size`."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        """(L, N, input_size) and states (h, c) -> (L, N, directions * hidden_size) and the last states."""
        output, (h, c) = self._forward(input, None if hx is None else (hx[0], hx[1]))
        return output, (h, c)
