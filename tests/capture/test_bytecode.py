"""The reader of bytecode, against what `dis` shows of the same code; and the lines of instructions."""

import dis
import inspect
import itertools
import json.decoder
import pickletools
import sys
import textwrap
import typing
import weakref
from types import CodeType, ModuleType

import pytest

from graphc.capture.location import line_of, user_line
from graphc.capture.state.bytecode import CELL, GLOBAL, ITEM, LOCAL, Chain, Step, all_codes, reads_of

MODULES = [inspect, json.decoder, pickletools, typing, textwrap]


def _codes(module: ModuleType) -> list[CodeType]:
    return list(all_codes(compile(inspect.getsource(module), str(module.__file__), "exec")))


def _shown_names(code: CodeType, *beginnings: str) -> set[str]:
    """The names that `dis` shows for instructions that begin so."""
    found: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith(beginnings):
            found.update(instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,))
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_names_are_those_that_dis_shows(module):
    for code in _codes(module):
        reads = reads_of(code)
        for root, operations in (
            (GLOBAL, ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")),
            (CELL, ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")),
            (LOCAL, ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK")),
        ):
            read = {
                chain.name for chain in reads.chains if chain.root == root and not (chain.stored and not chain.steps)
            }
            assert read >= _shown_names(code, *operations), code
        assert reads.assigned == _shown_names(code, "STORE_FAST", "DELETE_FAST"), code
        attributes = {step.key for chain in reads.chains for step in chain.steps if step.kind != ITEM} | reads.loose
        shown = _shown_names(code, "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM")
        assert attributes <= shown | _shown_names(code, "STORE_ATTR", "DELETE_ATTR"), code
        assert reads.reflective or shown <= attributes, code


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_a_chain_stands_where_its_variable_is_taken(module):
    for code in _codes(module):
        shown = {i.offset: i for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG"}
        long = {i.offset for i in dis.get_instructions(code) if i.opname == "EXTENDED_ARG"}
        for chain, places in reads_of(code).chains.items():
            for place in places:
                while place in long:
                    place += 2
                value = shown[place].argval
                assert chain.name in (value if isinstance(value, tuple) else (value,))


def test_chains_of_a_function():
    table: dict[str, list[float]] = {}

    def f(x, config):
        if config.deep.er:
            x = x + table["a"][0]
        table["b"] += [1.0]
        config.last = x
        found = [(x if config else table).other]  # and so much more that no Python compiles it once for each branch
        found.append(config)
        return found, found, found

    assert set(reads_of(f.__code__).chains) >= {
        Chain(LOCAL, "config", (Step("attribute", "deep"), Step("attribute", "er")), False),
        Chain(CELL, "table", (Step("item", "a"), Step("item", 0)), False),
        Chain(CELL, "table", (Step("item", "b"),), False),
        Chain(LOCAL, "config", (Step("attribute", "last"),), True),
        Chain(CELL, "table", (), False),
    }
    assert reads_of(f.__code__).loose == {"other"}  # of the one or the other: where branches meet, no chain goes on
    assert reads_of(f.__code__).assigned == {"x", "found"}


def test_where_branches_meet_at_a_long_argument_no_chain_goes_on():
    names = [f"n{k}" for k in range(300)]
    body = f"({', '.join(names)})", "d = [(a if c else b).last_of_all]", "d.append(c)", "return d, d, d"
    source = "def f(a, b, c):\n    " + "\n    ".join(body) + "\n"
    code = next(c for c in compile(source, "<long>", "exec").co_consts if isinstance(c, CodeType))
    assert "EXTENDED_ARG" in {i.opname for i in dis.get_instructions(code)}
    reads = reads_of(code)
    assert Chain(LOCAL, "b", (), False) in reads.chains
    assert reads.loose == {"last_of_all"}


def test_names_behind_the_first_256_are_read():
    names = [f"n{k}" for k in range(300)]
    code = compile("\n".join(f"{name}.part" for name in names), "<long>", "exec")
    assert [chain.name for chain in reads_of(code).chains] == names
    assert {chain.steps for chain in reads_of(code).chains} == {(Step("attribute", "part"),)}


def test_getattr_and_hasattr_name_what_they_probe():
    def f(x):
        return getattr(x, "scale", 1.0) if hasattr(x, "shift") else x

    def g(x, name):
        return getattr(x, name)

    assert reads_of(f.__code__).probed == {"scale", "shift"}
    assert not reads_of(f.__code__).reflective
    assert reads_of(g.__code__).reflective


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_the_line_of_each_instruction(module):
    for code in _codes(module):
        for instruction, position in itertools.zip_longest(range(0, len(code.co_code), 2), code.co_positions()):
            if position[0] is not None:
                assert line_of(code, instruction).endswith(f":{position[0]}")


def test_the_line_that_is_running():
    first, line, second = user_line(), sys._getframe().f_lineno, user_line()
    assert first == second
    assert first.endswith(f"test_bytecode.py:{line}")


def test_code_objects_are_not_kept():
    for k in range(3):  # the next may get the place in memory of one that is gone
        code = compile(f"{chr(10) * k}x", f"<gone {k}>", "exec")
        place = len(code.co_code) - 2
        assert line_of(code, place) == f"<gone {k}>:{k + 1}"
        kept = weakref.ref(code)
        del code
        assert kept() is None
