"""Weights of which some elements are kept at zero. As `torch.nn.utils.prune`.

A pruned weight is an attribute that a hook computes before each `forward`: the parameter `<name>_orig` times the buffer
`<name>_mask`. A method of pruning computes the mask.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from eager.core.shown import ShownObject
from eager.engine.language import E
from eager.functional.creation import ones_like, zeros_like
from eager.functional.sorting import kthvalue, topk
from eager.linalg.named import norm
from eager.nn.utils.convert_parameters import parameters_to_vector
from eager.nn.utils.weight_hooks import WeightHook, unhook
from eager.rng.fills import rand_like
from eager.rng.functions import rand

SHAPES_DIFFER = "importance_scores should have the same shape as {}, got {} vs {}"
NOT_UNSTRUCTURED = 'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {} of type {}'
NO_DIM = 'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
USE_CONTAINER = "Avoid adding multiple pruning hooks to the same tensor {} of module {}. Use a PruningContainer."


class BasePruningMethod(WeightHook, ShownObject):
    """Base of the methods: a subclass has a PRUNING_TYPE and a `compute_mask`.

    The type says what a method sees of a tensor that is pruned already: "unstructured" the elements that are left,
    "structured" the channels along `dim` that are left, "global" everything.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: Any = None

    @property
    def name(self) -> Any:  # type: ignore[override]
        """The name of the tensor."""
        return self._tensor_name

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """A mask like `default_mask`, with more zeros, for a tensor of importances `t`."""
        raise NotImplementedError

    def apply_mask(self, module: Any) -> Any:
        """The original times the mask. AssertionError unless a tensor has been pruned."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    def compute_weight(self, module: Any) -> Any:
        """See `apply_mask`."""
        return self.apply_mask(module)

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune the tensor `name` of `module` by this method, made with the other arguments, after earlier ones.

        importance_scores: what is compared in place of the elements. Returns the hook. An error changes nothing.
        """
        before = BasePruningMethod.of(module, name)
        if len(before) > 1:
            raise AssertionError(USE_CONTAINER.format(name, module))
        made = cls(*args, **kwargs)
        made._tensor_name = name
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            what = f"parameter {name} of {module}"
            raise AssertionError(SHAPES_DIFFER.format(what, importance_scores.shape, original.shape))
        importance = original if importance_scores is None else importance_scores
        if before:
            method: Any = PruningContainer(*_methods_of(before[0]))
            method.add_pruning_method(made)
            mask = method.compute_mask(importance, getattr(module, name + "_mask").detach().clone())
            unhook(module._forward_pre_hooks, before[0])
        else:
            method = made
            mask = method.compute_mask(importance, ones_like(original))
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """`t` with zeros where this method prunes it."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(SHAPES_DIFFER.format("tensor t", importance_scores.shape, t.shape))
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Let the tensor be a parameter again, with its zeros."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _methods_of(method: Any) -> tuple[Any, ...]:
    return tuple(method) if isinstance(method, PruningContainer) else (method,)


class PruningContainer(BasePruningMethod):
    """Several methods, each of which prunes what those before it have left."""

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            if self._tensor_name is None:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same tensor. TypeError, ValueError for anything else."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """`default_mask` with what the last method prunes of what it leaves."""
        method = self._pruning_methods[-1]
        left = _left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype).clone()
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _left(method: Any, t: Any, mask: Any) -> Any:
    """The index of what a method of its type sees of `t`, where `mask` has been pruned."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    index: list[Any] = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "structured":
        if not hasattr(method, "dim"):
            raise AttributeError(NO_DIM)
        dim = method.dim + t.dim() if method.dim < 0 else method.dim
        if dim < 0:
            raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
        index[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    elif method.PRUNING_TYPE != "global":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    return tuple(index)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if (whole and amount < 0) or (not whole and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _number_pruned(amount: Any, size: int) -> int:
    """How many of `size` an amount means. ValueError for more than there are."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if int(amount) > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount)


def _channels(t: Any, dim: int) -> int:
    """The size of `t` along `dim`. Errors unless there are other dims."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
    return t.shape[dim]


class Identity(BasePruningMethod):
    """Prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """`default_mask`."""
        return default_mask


class _Unstructured(BasePruningMethod):
    """Prunes an amount of the elements (a number or a fraction): those that come first by `_order`."""

    PRUNING_TYPE = "unstructured"
    _largest: bool

    def __init__(self, amount: Any):
        _check_amount(amount)
        self.amount = amount

    def _order(self, t: Any) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """`default_mask` with the zeros added."""
        n, mask = _number_pruned(self.amount, t.nelement()), default_mask.clone()
        if n:
            mask.view(-1)[topk(self._order(t).view(-1), k=n, largest=self._largest).indices] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    _largest = True

    def _order(self, t: Any) -> Any:
        return rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the elements of least magnitude."""

    _largest = False

    def _order(self, t: Any) -> Any:
        return E.abs(t)


class _Structured(BasePruningMethod):
    """Prunes an amount of the channels along `dim`; `_kept` says which are not."""

    PRUNING_TYPE = "structured"
    amount: Any
    dim: int

    def _kept(self, t: Any, channels: int, pruned: int) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """`default_mask` with the zeros added."""
        channels = _channels(t, self.dim)
        n = _number_pruned(self.amount, channels)
        if not n:
            return default_mask
        mask: Any = zeros_like(t)
        index: list[Any] = [slice(None)] * t.dim()
        index[self.dim] = self._kept(t, channels, n)
        mask[tuple(index)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def __init__(self, amount: Any, dim: int = -1):
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def _kept(self, t: Any, channels: int, pruned: int) -> Any:
        drawn = rand(channels)
        return drawn > kthvalue(drawn, k=pruned).values


class LnStructured(_Structured):
    """Prunes the channels of least `n`-norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1):
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def _kept(self, t: Any, channels: int, pruned: int) -> Any:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return topk(norm(t, p=self.n, dim=others), k=channels - pruned, largest=True).indices


class CustomFromMask(BasePruningMethod):
    """Prunes where `mask` is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any):
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """`default_mask` with the zeros added. AssertionError for another shape."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Put the weight `name` under a mask of ones. Returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune an amount (a number or a fraction) of the elements, at random. Returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune an amount of the elements, those of least magnitude. Returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune an amount of the channels along `dim`, at random. Returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prune an amount of the channels along `dim`, those of least `n`-norm. Returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune where `mask` is zero. Returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: type[BasePruningMethod], importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune the weights in `parameters`, pairs of (module, name), as if they were one vector.

    importance_scores: (module, name) -> what is compared in place of the elements. TypeError for a method that is not
    "unstructured", or if the arguments are of other types.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    weights = [getattr(module, name) for module, name in pairs]
    masks = [getattr(m, n + "_mask", None) for m, n in pairs]
    importance = parameters_to_vector([scores.get(pair, w) for pair, w in zip(pairs, weights, strict=True)])
    present = parameters_to_vector([ones_like(w) if m is None else m for w, m in zip(weights, masks, strict=True)])
    method: Any = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(NOT_UNSTRUCTURED.format(pruning_method, method.PRUNING_TYPE))
    method._tensor_name = "temp"
    mask: Any = PruningContainer(method).compute_mask(importance, present)
    at = 0
    for (module, name), weight in zip(pairs, weights, strict=True):
        custom_from_mask(module, name, mask=mask[at : at + weight.numel()].view_as(weight))
        at += weight.numel()


def remove(module: Any, name: str) -> Any:
    """Let the weight be a parameter again, with its zeros. ValueError unless it is pruned. Returns the module."""
    for method in BasePruningMethod.of(module, name):
        method.remove(module)
        unhook(module._forward_pre_hooks, method)
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether some weight here or below is pruned."""
    hooks = (hook for each in module.modules() for hook in each._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
