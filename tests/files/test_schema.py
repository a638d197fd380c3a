"""Schemas say what is wrong, and where."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.errors import FileError
from graphc.files.schema import Either, Flag, Maybe, Number, OneOf, Record, Row, Table, Text, Tuple, Whole

SCHEMA = Record(
    {"name": Text(r"[a-z]+", "a name", 5), "rows": Row(Tuple((Whole(0, 9), Flag())), least=1, most=3)},
    {
        "table": Table(Text(most=3), Maybe(Number(0))),
        "mode": OneOf((1, "a")),
        "end": Either(OneOf(("never",)), Number()),
    },
)
GOOD: dict[str, Any] = {
    "name": "abc", "rows": [[1, True], [9, False]], "table": {"a": 1.5, "b": None}, "mode": 1, "end": "never",
}  # fmt: skip

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": "abcdef"}, "name: the text 'abcdef', where a name of at most 5 characters is expected"),
    ({"name": "ABC"}, "name: the text 'ABC', where a name is expected"),
    ({"name": "ab\n"}, "name: the text 'ab\\n', where a name is expected"),
    ({"name": "\ud800"}, "name: the text '\\ud800', where a name of at most 5 characters is expected"),
    ({"name": None}, "name: null, where"),
    ({"rows": {}}, "rows: an object, where a list of 1 to 3 entries is expected"),
    ({"rows": []}, "rows: a list, where a list of 1 to 3 entries is expected"),
    ({"rows": [[1, True]] * 4}, "rows: a list, where"),
    ({"rows": [[1, True], [1]]}, "rows[1]: a list, where a list of 2 entries is expected"),
    ({"rows": [[1, 1]]}, "rows[0][1]: the number 1, where true or false is expected"),
    ({"rows": [[True, True]]}, "rows[0][0]: true, where a whole number from 0 to 9 is expected"),
    ({"rows": [[1.0, True]]}, "rows[0][0]: the number 1.0, where"),
    ({"rows": [[10, True]]}, "rows[0][0]: the number 10, where"),
    ({"table": []}, "table: a list, where an object is expected"),
    ({"table": {"a": -1}}, "table.a: the number -1, where a finite number of at least 0 is expected"),
    ({"table": {"a": float("inf")}}, "table.a: the number inf, where"),
    ({"table": {"a": float("nan")}}, "table.a: the number nan, where"),
    ({"table": {"long": 1}}, "table, the name of an entry: the text 'long', where"),
    ({"mode": True}, "mode: true, where one of 1, 'a' is expected"),
    ({"mode": 1.0}, "mode: the number 1.0, where"),
    ({"end": "always"}, "end: the text 'always', where one of 'never' is expected"),
    ({"more": 1}, "an unknown entry 'more'"),
    ({"more" * 100: 1}, f"an unknown entry '{'more' * 10}...'"),
]


def refused(value: Any, place: str = "") -> str:
    with pytest.raises(FileError) as caught:
        SCHEMA.check(value, place, FileError.of(""))
    return str(caught.value)


def test_what_fits_is_accepted():
    SCHEMA.check(GOOD, "", FileError.of(""))
    SCHEMA.check({name: GOOD[name] for name in ("name", "rows")}, "", FileError.of(""))


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_does_not_is_named(number: int):
    change, message = WRONG[number]
    assert refused({**GOOD, **change}).startswith(message)


def test_what_is_missing_is_named_and_where():
    assert refused({"rows": [[1, True]]}) == "the entry 'name' is missing"
    assert refused(None, "a[0]") == "a[0]: null, where an object is expected"
    assert refused({**GOOD, "rows": None}, "a[0]").startswith("a[0].rows: null")


def test_an_error_survives_a_process_boundary():
    import pickle

    error = pickle.loads(pickle.dumps(FileError("wrong", file="f", place="a.b")))
    assert (str(error), error.problem, error.file, error.place) == ("f: a.b: wrong", "wrong", "f", "a.b")
