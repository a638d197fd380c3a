"""Which modules inside a model get a module of their own around them. As `torch.distributed.fsdp.wrap`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, final

from eager.nn import Module, ModuleDict, ModuleList, MultiheadAttention

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip

NO_DICT = "The output of `lambda_fn` should be `False`, `True`, or a dict of kwargs, but got {}"
_LARGE = int(1e8)  # elements

Settings = dict[str, Any]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """The modules for which `lambda_fn` is true."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Collection[type[Module]]
) -> bool:
    """The modules of these classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = _LARGE,
    force_leaf_modules: Collection[type[Module]] | None = None,
    exclude_wrap_modules: Collection[type[Module]] | None = None,
) -> bool:  # fmt: skip
    """The modules with so many elements in parameters that no module inside has around it.

    force_leaf_modules    classes into which nobody looks; None: MultiheadAttention
    exclude_wrap_modules  classes that are never chosen; None: ModuleList and ModuleDict
    """
    leaves = (MultiheadAttention,) if force_leaf_modules is None else tuple(force_leaf_modules)
    left = (ModuleList, ModuleDict) if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    return nonwrapped_numel >= min_num_params and not isinstance(module, leaves if recurse else left)


class CustomPolicy:
    """The modules for which `lambda_fn` is true; of a dict, with these settings in place of the model's."""

    def __init__(self, lambda_fn: Callable[[Module], bool | Settings]):
        self._lambda_fn = lambda_fn

    def settings(self, module: Module) -> Settings | None:
        """What the module around `module` is made with besides; None: there is none. ValueError for neither."""
        found = self._lambda_fn(module)
        if not isinstance(found, (bool, dict)):
            raise ValueError(NO_DICT.format(found))
        return found if isinstance(found, dict) else {} if found else None


@final
class ModuleWrapPolicy(CustomPolicy):
    """The modules of these classes."""

    def __init__(self, module_classes: Collection[type[Module]]):
        classes = tuple(module_classes)
        super().__init__(lambda module: isinstance(module, classes))
        self._module_classes = set(classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        """Whether `module` is chosen, as a policy that is a function says it."""
        return recurse or self.settings(module) is not None

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({self._module_classes})"


def wrapped(
    root: Module, policy: Any, around: Callable[..., Module], settings: Settings, ignored: Collection[Module] = ()
) -> None:
    """Put `around(module, **settings)` in the place of each module inside `root` that a policy chooses."""
    made: dict[int, Module] = {}  # a module may be in several places

    def visit(module: Module, inside: bool) -> tuple[Module, int]:
        """What takes the place of `module`, and the elements of its parameters that have a module around them."""
        if id(module) in made:
            return made[id(module)], 0
        count = sum(p.numel() for p in module.parameters())
        by_class = isinstance(policy, CustomPolicy)
        if not by_class and not policy(module=module, recurse=True, nonwrapped_numel=count):
            return module, 0
        covered = 0
        for name, child in module._modules.items():
            if child is not None and child not in ignored:
                module._modules[name], elements = visit(child, True)
                covered += elements
        more = policy.settings(module) if by_class and inside else None
        if not by_class and inside and policy(module=module, recurse=False, nonwrapped_numel=count - covered):
            more = {}
        if more is None:
            return module, covered
        made[id(module)] = around(module, **{**settings, **more})
        return made[id(module)], count

    visit(root, False)


_enabled: list[tuple[Any, Settings]] = []  # of the contexts that are in force, the innermost last


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A context in which `wrap(module)` is `wrapper_cls(module, **wrapper_kwargs)`."""
    _enabled.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _enabled.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """`module`, inside `enable_wrap` with the module around it that this says."""
    if not _enabled:
        return module
    around, settings = _enabled[-1]
    return around(module, **{**settings, **wrap_overrides})
