"""The state of a module as PyTorch pickles it, in which each kind of hook has several tables."""

from __future__ import annotations

from functools import partial
from typing import Any

from eager.nn.hooks import HookTable, marked

TABLES = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip
# table of PyTorch, of the hooks for which something holds -> (the table of those hooks, the field of Hook)
MARKS = {
    "_forward_hooks_with_kwargs": ("_forward_hooks", "with_kwargs"),
    "_forward_pre_hooks_with_kwargs": ("_forward_pre_hooks", "with_kwargs"),
    "_forward_hooks_always_called": ("_forward_hooks", "always_call"),
}
FULL = "_is_full_backward_hook"


def in_pytorch_form(module: Any, state: Any) -> Any:
    """`state`, what is kept of `module`, with its hooks as PyTorch has them."""
    if not isinstance(state, dict) or "_parameters" not in state:  # a user's class keeps itself in another way
        return state
    tables: dict[str, HookTable] = {name: state.get(name, HookTable()) for name in TABLES}
    made: dict[str, Any] = {name: table.functions() for name, table in tables.items()}
    for number in tables["_load_state_dict_pre_hooks"].with_kwargs & made["_load_state_dict_pre_hooks"].keys():
        # PyTorch has a class for those that take the module
        made["_load_state_dict_pre_hooks"][number] = partial(made["_load_state_dict_pre_hooks"][number], module)
    made |= {name: marked(tables[table], field) for name, (table, field) in MARKS.items()}
    return {**state, **made, FULL: True if tables["_backward_hooks"] else None}


def from_pytorch_form(state: dict[str, Any]) -> dict[str, Any]:
    """`state`, what is kept of a module of PyTorch or of one here, with its hooks as modules here have them."""
    kept = {name: value for name, value in state.items() if name not in TABLES and name not in MARKS and name != FULL}
    for name in TABLES:
        table = state.get(name)
        if isinstance(table, HookTable):
            kept[name] = table
        elif table:
            marks = {field: state.get(mark, {}) for mark, (of, field) in MARKS.items() if of == name}
            table.successor = kept[name] = HookTable(table, **marks)  # for the handles that are in the same pickle
    return kept
