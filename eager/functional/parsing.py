"""What PyTorch's parser of arguments says of a call: asked when a call has failed.

`signatures.txt` has the signatures that PyTorch 2.13 parses, in its notation: a line for each overload, with "." before
those of methods that do not follow from the function's. They are what PyTorch's `gen_python_functions.load_signatures`
makes of `native_functions.yaml` and `deprecated.yaml`, and the texts in `torch/csrc/autograd/python_*.cpp` of what is
bound by hand; `tests/eager/test_argument_parser.py` holds them against PyTorch.

The rules are those of `torch/csrc/utils/python_arg_parser.cpp` and `invalid_arguments.cpp`: overloads are tried in
order; if there is one, or one that takes as many arguments as there are, it says what is wrong, else all are listed.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eager.core.devices import device
from eager.core.dtypes import dtype, type_name
from eager.core.tensor import Tensor
from eager.core.warned import warn_once

FACTORY = (  # written "%" in the file
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, "
    "bool? requires_grad=False"
)
TEXT = Path(__file__).with_name("signatures.txt").read_text("utf-8")  # now: a call may fail while a file is read
NUMPY = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
# functions that take numbers for tensors
NUMBERS = frozenset("add div divide mul multiply sub subtract true_divide floor_divide copy_".split())
MISSING = "{name}() missing {count} required positional argument{s}: {names}"


def _scalar(value: Any) -> bool:
    return isinstance(value, (numbers.Number, np.generic)) and not isinstance(value, np.str_)


def _long(value: Any) -> bool:
    return not isinstance(value, (bool, np.bool)) and isinstance(value, (int, np.integer))


def _index(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value._dtype().kind in "iub" and value.numel() == 1  # type: ignore[attr-defined]
    return not isinstance(value, (bool, np.bool)) and hasattr(value, "__index__")


def _number_tensor(value: Any, kinds: str) -> bool:
    return isinstance(value, Tensor) and not value.requires_grad and not value._d.shape and value._dtype().kind in kinds


def _int(value: Any) -> bool:
    return _long(value) or _number_tensor(value, "iu") or (hasattr(value, "__index__") and not _plain(value))


def _plain(value: Any) -> bool:
    return isinstance(value, (bool, np.bool, Tensor))


def _double(value: Any) -> bool:
    return (_scalar(value) and not isinstance(value, (complex, np.complexfloating))) or _number_tensor(value, "fciub")


def _named(*names: str) -> Callable[[Any], bool]:
    return lambda value: any(kind.__name__ in names for kind in type(value).__mro__)


# type in a signature -> (its name in messages, whether a value is taken for it)
KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": ("Tensor", lambda value: isinstance(value, Tensor)),
    "Scalar": ("Number", lambda value: _scalar(value) or _number_tensor(value, "fciub")),
    "double": ("float", _double),
    "int64_t": ("int", _int),
    "SymInt": ("int", _index),
    "bool": ("bool", _named("bool", "bool_")),
    "Generator": ("torch.Generator", _named("Generator")),
    "ScalarType": ("torch.dtype", lambda value: isinstance(value, dtype) or value in (bool, int, float, complex)),
    "Layout": ("torch.layout", _named("layout")),
    "MemoryFormat": ("torch.memory_format", _named("memory_format")),
    "Device": ("torch.device", lambda value: isinstance(value, (str, device)) or _long(value)),
    "Storage": ("torch.Storage", _named("UntypedStorage", "TypedStorage")),
    "Stream": ("Stream", _named("Stream")),
    "std::string_view": ("str", lambda value: isinstance(value, str)),
    "Dimname": ("name", lambda value: isinstance(value, str)),
    "PyObject*": ("object", lambda value: True),
}
# type of a list -> (its name, whether an element is taken, whether all are asked)
LISTS: dict[str, tuple[str, Callable[[Any], bool], bool]] = {
    "IntArrayRef": ("tuple of ints", _index, False),
    "SymIntArrayRef": ("tuple of ints", _index, False),
    "ArrayRef<double>": ("tuple of floats", _scalar, False),
    "ScalarList": ("tuple of Scalars", _scalar, True),
    "TensorList": ("tuple of Tensors", KINDS["Tensor"][1], True),
    "DimnameList": ("tuple of names", KINDS["Dimname"][1], True),
}


class Refused(Exception):
    """A signature does not take the arguments. `text` is what it says, if it is the one that may."""

    def __init__(self, text: str):
        self.text = text


class Parameter(NamedTuple):
    """A parameter of a signature."""

    name: str
    kind: str
    size: bool  # of a list: whether a lone int is taken
    default: str | None
    nullable: bool
    by_name: bool  # only

    @property
    def kind_name(self) -> str:
        """As messages have it."""
        return (LISTS.get(self.kind) or KINDS[self.kind])[0]

    def takes(self, value: Any, at: int, numbers: bool) -> int | None:
        """None if it takes `value`, else which element of it is wrong, or -1."""
        if self.kind not in LISTS:
            return None if KINDS[self.kind][1](value) or (numbers and _scalar(value)) else -1
        fits, every = LISTS[self.kind][1:]
        if isinstance(value, (tuple, list)):
            wrong = next((k for k, v in enumerate(value if every else value[:1]) if not fits(v)), None)
            if wrong is not None and self.kind == "TensorList":
                kind = type_name(value[wrong])
                raise TypeError(f"expected Tensor as element {wrong} in argument {at}, but got {kind}")
            return wrong
        return None if self.size and not every and fits(value) else -1


class Signature(NamedTuple):
    """One overload of a function."""

    name: str
    parameters: tuple[Parameter, ...]
    deprecated: bool

    @property
    def required(self) -> int:
        """How many arguments it takes at least."""
        return sum(p.default is None for p in self.parameters)

    def __str__(self) -> str:
        shown: list[str] = []
        for p in self.parameters:
            if p.by_name and "*" not in shown:
                shown.append("*")
            shown.append(f"{p.kind_name} {p.name}" + ("" if p.default is None else f" = {p.default}"))
        return f"({', '.join(shown)})"

    def check(self, values: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Raise Refused if it does not take the arguments."""
        positional = [p for p in self.parameters if not p.by_name]
        # one list of ints may be given int by int, as in view(2, 3)
        anyhow = len(positional) == 1 and "IntArrayRef" in self.parameters[0].kind and _index(next(iter(values), None))
        if len(values) > len(positional) and not anyhow:
            raise Refused(self._too_many(len(values)))
        used = given = 0
        for k, p in enumerate(self.parameters):
            by_name = given >= len(values)
            if not by_name and p.by_name:
                raise Refused(self._too_many(len(values)))
            key = next((n for n in (p.name, *NUMPY.get(p.name, ())) if n in named), None) if by_name else None
            used += key is not None
            if by_name and key is None:
                if p.default is None:
                    absent = [f'"{q.name}"' for q in self.parameters[k:] if q.default is None]
                    s = "s" if len(absent) == 1 else ""  # PyTorch has it so
                    raise Refused(MISSING.format(name=self.name, count=len(absent), s=s, names=", ".join(absent)))
                continue
            value = named[key] if key is not None else values[given]
            given += not by_name
            if value is None and p.nullable:
                continue
            wrong = p.takes(value, k, self.name.removesuffix("_") in NUMBERS and p.kind == "Tensor")
            if wrong is None:
                continue
            if anyhow and not by_name:
                given = len(values)
                continue
            at, what = "" if by_name else f" (position {given})", f"not {type_name(value)}"
            if isinstance(value, (tuple, list)) and wrong >= 0 and not by_name:
                what = f"but found element of type {type_name(value[wrong])} at pos {wrong}"
            raise Refused(f"{self.name}(): argument '{p.name}'{at} must be {p.kind_name}, {what}")
        if used < len(named):
            raise Refused(self._unknown(named, len(values)))

    def _too_many(self, given: int) -> str:
        least, most = self.required, sum(not p.by_name for p in self.parameters)
        if least != most:
            return f"{self.name}() takes from {least} to {most} positional arguments but {given} were given"
        s, were = "" if most == 1 else "s", "was" if given == 1 else "were"
        return f"{self.name}() takes {most} positional argument{s} but {given} {were} given"

    def _unknown(self, named: Mapping[str, Any], given: int) -> str:
        places = {p.name: k for k, p in enumerate(self.parameters)}
        for name in named:
            if name not in places:
                return f"{self.name}() got an unexpected keyword argument '{name}'"
            if places[name] < given:
                return f"{self.name}() got multiple values for argument '{name}'"
        return "invalid keyword arguments"


def _parameter(text: str, by_name: bool) -> Parameter:
    kind, _, name = text.partition(" ")
    name, equals, default = name.partition("=")
    nullable = "?" in kind or default == "None"
    kind, bracket, _ = kind.replace("?", "").partition("[")
    return Parameter(name, kind, bool(bracket), default if equals else None, nullable, by_name)


def _signature(line: str) -> Signature:
    name, _, rest = line.partition("(")
    inside, _, end = rest.rpartition(")")
    before, star, after = inside.replace("%", FACTORY).partition("*, ")
    found = [_parameter(text, False) for text in before.split(", ") if text]
    found += [_parameter(text, True) for text in after.split(", ") if star]
    return Signature(name, tuple(found), bool(end))


def _bound(form: Signature) -> Signature | None:
    """The method of a function: without the tensor itself, and `out`. None if it takes no tensor first."""
    if not form.parameters or form.parameters[0][:2] not in (("input", "Tensor"), ("self", "Tensor")):
        return None
    return form._replace(parameters=tuple(p for p in form.parameters[1:] if p.name != "out"))


@functools.cache
def _table() -> dict[str, list[str]]:
    """Name, with "." for a method -> its lines."""
    found: dict[str, list[str]] = {}
    for line in TEXT.splitlines():
        found.setdefault(line.partition("(")[0], []).append(line)
    return found


@functools.cache
def signatures(name: str, method: bool) -> tuple[Signature, ...]:
    """The overloads of the function or method that PyTorch's messages call `name`; none if it has no parser."""
    if method and (lines := _table().get(f".{name}")) is not None:
        return tuple(_signature(line[1:]) for line in lines)
    forms = tuple(map(_signature, _table().get(name, ())))
    return tuple(form for each in forms if (form := _bound(each)) is not None) if method else forms


def parsing_error(name: str, values: Sequence[Any], named: Mapping[str, Any], method: bool = False) -> TypeError | None:
    """PyTorch's error for arguments that no overload of `name` takes; None if one does, or there is none.

    values: what was given by position, without the tensor whose method it is.
    """
    forms = signatures(name, method)
    if not forms:
        return None
    if method and len(forms) == 1 and not forms[0].parameters:  # Python itself says so
        given = f"no arguments ({len(values)} given)"
        return (
            TypeError(f"TensorBase.{name}() takes {'no keyword arguments' if named else given}")
            if named or values
            else None
        )
    texts: list[str] = []
    for form in forms:
        try:
            form.check(values, named)
        except Refused as refused:
            texts.append(refused.text)
        except TypeError as error:
            return error
        else:
            return None
    count = len(values) + len(named)
    fitting = [
        text
        for form, text in zip(forms, texts, strict=True)
        if form.required <= count <= len(form.parameters) and not form.deprecated
    ]
    if len(forms) == 1 or len(fitting) == 1:
        return TypeError(texts[0] if len(forms) == 1 else fitting[0])
    return TypeError(_no_overload(name, [str(form) for form in forms if not form.deprecated], values, named))


def no_overload(name: str, values: Sequence[Any]) -> TypeError:
    """PyTorch's error for arguments of the function `name` that none of its overloads takes."""
    options = [str(form) for form in signatures(name, False) if not form.deprecated]
    return parsing_error(name, values, {}) or TypeError(_no_overload(name, options, values, {}))


def _no_overload(name: str, options: Sequence[str], values: Sequence[Any], named: Mapping[str, Any]) -> str:
    names = list(named)[::-1]  # as of a hash table of C++
    given = "".join(f"{type_name(v)}, " for v in values) + "".join(f"{n}={type_name(named[n])}, " for n in names)
    given = f"({given[:-2] if values else given})"
    text = f"{name}() received an invalid combination of arguments - got "
    if len(options) == 1:
        words = _words(options[0])
        if unknown := _unknown_names(words, names):
            return f"{text}unrecognized keyword arguments: {', '.join(unknown)}"
        fitting = len(words) == len(values) + len(names)
        return f"{text}{_marked(words, values, named) if fitting else given}, but expected {options[0]}"
    text += f"{given}, but expected one of:\n"
    for option in options:
        text += f" * {option}\n"
        words = _words(option)
        if len(words) != len(values) + len(names):
            continue
        if unknown := _unknown_names(words, names):
            text += f"      didn't match because some of the keywords were incorrect: {', '.join(unknown)}\n"
        else:
            marked = _marked(words, values, named)
            text += f"      didn't match because some of the arguments have invalid types: {marked}\n"
    return text


def _words(option: str) -> list[tuple[str, str]]:
    """The (type, name) of each parameter as PyTorch reads its own text: the name is what comes last, also a default."""
    return [(kind or last, last) for kind, _, last in (word.rpartition(" ") for word in option[1:-1].split(", "))]


def _unknown_names(words: Sequence[tuple[str, str]], names: Sequence[str]) -> list[str]:
    last = [name for _, name in words[max(len(words) - len(names), 0) :]]
    return [name for name in names if name not in last]


def _marked(words: Sequence[tuple[str, str]], values: Sequence[Any], named: Mapping[str, Any]) -> str:
    """The types of the arguments, those between "!" that do not match."""
    shown = ""
    for k, (kind, name) in enumerate(words):
        value = values[k] if k < len(values) else named[name]
        what = type_name(value)
        fits = what in {"float": ("float", "int"), "int": ("int",)}.get(kind, (kind,))
        if isinstance(value, (list, tuple)):
            inside = ", ".join(map(type_name, value)) + ("," if isinstance(value, tuple) and len(value) == 1 else "")
            what += f" of {'[' if isinstance(value, list) else '('}{inside}{']' if isinstance(value, list) else ')'}"
        word = what if k < len(values) else f"{name}={what}"
        shown += f"{word}, " if fits else f"!{word}!, "
    return f"({shown[:-2] if values else shown})"


OLD_OVERLOAD = (
    "This overload of {0} is deprecated:\n\t{0}{1}\nConsider using one of the following signatures instead:\n\t{0}{2}"
)
Call = tuple[tuple[Any, ...], dict[str, Any]]


def newer_call(name: str, values: Sequence[Any], named: Mapping[str, Any], method: bool) -> Call | None:
    """The arguments of a deprecated overload as the function takes them: tensors first, numbers by name; warns, once.

    None if no such overload takes them. values: with the tensor whose method it is.
    """
    forms = signatures(name, method)
    own = values[: int(method)]
    for form in forms:
        if form.deprecated and _is_scaled(form) and _takes(form, values[len(own) :], named):
            given = dict(named)
            given.update(zip((parameter.name for parameter in form.parameters), values[len(own) :], strict=False))
            tensors = [given.pop(each.name) for each in form.parameters if each.kind == "Tensor" and not each.by_name]
            now = next(str(other) for other in forms if not other.deprecated)
            warn_once(OLD_OVERLOAD.format(name, form, now), "a deprecated overload")
            return (*own, *tensors), given
    return None


def _is_scaled(form: Signature) -> bool:
    """Whether it is one of those with numbers among its tensors."""
    return any(map(_is_number, form.parameters)) and any(parameter.kind == "Tensor" for parameter in form.parameters)


def _is_number(parameter: Parameter) -> bool:
    return parameter.kind == "Scalar" and not parameter.by_name


def _takes(form: Signature, values: Sequence[Any], named: Mapping[str, Any]) -> bool:
    try:
        form.check(values, named)
    except Refused:
        return False
    return True
