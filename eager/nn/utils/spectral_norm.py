"""The older `spectral_norm`, by a hook. As `torch.nn.utils.spectral_norm`."""

from __future__ import annotations

from typing import Any

from eager.core.grad_mode import no_grad
from eager.core.parameter import Parameter
from eager.functional.linear import dot, mv
from eager.linalg import multi_dot
from eager.nn.functional import normalize
from eager.nn.parameter import is_lazy
from eager.nn.utils.parametrizations import as_matrix, check_iterations, output_dim, random_direction
from eager.nn.utils.weight_hooks import WeightHook, unhook

LAZY = (
    "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
    "before applying spectral normalization"
)
PARTS = ("_orig", "_u", "_v")


class SpectralNorm(WeightHook):
    """Sets the weight `name` to `<name>_orig` by its largest singular value, u W v of `<name>_u` and `<name>_v`."""

    _version = 1  # since then the weight is no buffer, and v is one

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        check_iterations(n_power_iterations)
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: Any, do_power_iteration: bool | None = None) -> Any:
        """The weight, after some steps of the power method in training mode."""
        weight, u, v = (getattr(module, self.name + part) for part in PARTS)
        matrix = as_matrix(weight, self.dim)
        if module.training if do_power_iteration is None else do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(normalize(mv(matrix, v), dim=0, eps=self.eps))
                # copies: u and v are written again before the gradients of two results are known
                u, v = u.clone(), v.clone()
        return weight / dot(u, mv(matrix, v))

    def note_version(self, module: Any, state: Any, prefix: str, metadata: dict[str, Any]) -> None:
        """A hook of `state_dict`: the form that this state has."""
        versions, key = metadata.setdefault("spectral_norm", {}), self.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self._version

    def take_old_form(self, state: dict[str, Any], prefix: str, metadata: dict[str, Any], strict: bool,
                      missing: list[str], *rest: Any) -> None:  # fmt: skip
        """A hook before `load_state_dict`: find v of a state of before version 1, which has none."""
        version = metadata.get("spectral_norm", {}).get(self.name + ".version")
        key = prefix + self.name
        if (version or 0) >= 1:
            return
        if version is None and key not in state and all(key + part in state for part in PARTS):
            return  # of version 1, without its metadata
        absent = [key + part for part in ("_orig", "", "_u") if key + part not in state]
        if absent:
            missing.extend(absent if strict else ())
            return
        with no_grad():
            weight, u = state[key + "_orig"], state[key + "_u"]
            sigma = (weight / state.pop(key)).mean()
            state[key + "_v"] = self._right_vector(as_matrix(weight, self.dim), u, sigma)

    @staticmethod
    def _right_vector(matrix: Any, u: Any, sigma: Any) -> Any:
        """v with W v proportional to u and u W v = sigma; by the pseudoinverse, as W^T W need not have an inverse."""
        v = multi_dot([matrix.t().mm(matrix).pinverse(), matrix.t(), u.unsqueeze(1)]).squeeze(1)
        return v * (sigma / dot(u, mv(matrix, v)))


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value, estimated by the power method before each `forward` in training.

    RuntimeError for a weight that already is so, ValueError for None or one without a shape.
    """
    if SpectralNorm.of(module, name):
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    hook = SpectralNorm(name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    if is_lazy(weight):
        raise ValueError(LAZY)
    with no_grad():
        u, v = (random_direction(weight, size, eps) for size in as_matrix(weight, hook.dim).size())
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)  # no parameter: something may ask for it before the first `forward`
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(hook.note_version)
    module._register_load_state_dict_pre_hook(hook.take_old_form)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again. ValueError unless it is under `spectral_norm`."""
    for hook in SpectralNorm.of(module, name):
        with no_grad():
            weight = hook.compute_weight(module, do_power_iteration=False)
        for attribute in (name, *(name + part for part in PARTS)):
            delattr(module, attribute)
        module.register_parameter(name, Parameter(weight.detach()))
        for table, function in (
            (module._forward_pre_hooks, hook), (module._state_dict_hooks, hook.note_version),
            (module._load_state_dict_pre_hooks, hook.take_old_form),
        ):  # fmt: skip
            unhook(table, function)
        return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
