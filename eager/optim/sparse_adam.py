"""Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide
from eager.optim.updates import learning_rate
from eager.sparse.rows import at, put, totals


class SparseAdam(Optimizer):
    """Adam of which each step updates only the elements, and their moments, that the gradient has.

    As `torch.optim.SparseAdam`. Raises ValueError for sparse parameters, RuntimeError for a dense gradient.
    """

    _settings = "lr betas eps maximize"
    _takes_sparse = True

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ):  # fmt: skip
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for k, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {k}: {beta}")
        self._begin(locals())
        wrong = [
            [i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if is_sparse(p)
        ]
        if wrong:
            raise ValueError(f"Sparse params at indices {wrong}: SparseAdam requires dense parameter tensors")

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not is_sparse(grad):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        if not remembered:
            remembered.update(step=counter(), exp_avg=like(parameter), exp_avg_sq=like(parameter))
        beta1, beta2 = group["betas"]
        step, mean, square = remembered["step"], remembered["exp_avg"], remembered["exp_avg_sq"]
        step.add_(1)
        places, values = totals(grad)
        for moment, beta, news in ((mean, beta1, values), (square, beta2, E.mul(values, values))):
            old = at(moment, places)
            put(moment, places, E.add(old, E.mul(E.sub(news, old), 1 - beta)))
        known = wide(step)
        corrections = [E.sub(1.0, E.pow(beta, known)) for beta in (beta1, beta2)]
        rate = E.mul(E.div(E.sqrt(corrections[1]), corrections[0]), learning_rate(group))
        change = E.div(at(mean, places), E.add(E.sqrt(at(square, places)), group["eps"]))
        put(parameter, places, E.sub(at(parameter, places), E.mul(change, E.cast(rate, dtype=change._dtype()))))
