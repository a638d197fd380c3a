"""`python -m tests.signatures > eager/functional/signatures.txt`: the signatures that PyTorch's parser has, recorded.

Run where PyTorch and PyYAML are installed: PyTorch brings the generator of its own bindings, `torchgen`, and what that
reads. What PyTorch binds by hand is in no file that it brings: those lines are kept as they are recorded, and
`tests/eager/test_argument_parser.py` holds them against what the functions say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eager.functional.parsing import FACTORY, TEXT

READ_AS = {
    "c10::string_view": "std::string_view",
    "c10::List<::std::optional<Tensor>>": "TensorList",
    FACTORY: "%",
}


def generated() -> dict[str, list[str]]:
    """Name, with "." for a method -> the lines that PyTorch's generator makes of its declarations."""
    import torchgen.gen
    from torchgen.packaged.autograd import gen_python_functions as bindings

    root = Path(torchgen.gen.__file__).parent / "packaged"
    native = root / "ATen/native"
    parsed = torchgen.gen.parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
    declared = [f for f in parsed.native_functions if bindings.should_generate_py_binding(f)]
    kinds = [getattr(bindings, f"is_py_{kind}_function") for kind in ("torch", "nn", "fft", "linalg", "special")]
    found: dict[str, list[str]] = {}
    for method, wanted in [(False, kind) for kind in kinds] + [(True, bindings.is_py_variable_method)]:
        pairs = bindings.load_signatures(declared, str(root / "autograd/deprecated.yaml"), method=method)
        overloads: dict[str, list[Any]] = {}
        for pair in pairs:
            if wanted(pair.function):
                overloads.setdefault("." * method + pair.signature.name, []).append(pair)
        for name, group in overloads.items():
            found.setdefault(name, [_line(one, method) for one in bindings.group_overloads(group)])
    return found


def _line(overload: Any, method: bool) -> str:
    text = overload.signature.signature_str(symint=True)
    for written, read in READ_AS.items():
        text = text.replace(written, read)
    return "." * method + text


def lines() -> Iterator[str]:
    """The file as it is to be: what is recorded, in the words of the PyTorch that is installed."""
    made, done = generated(), set[str]()
    for line in TEXT.splitlines():
        name = line.partition("(")[0]
        if name not in made:
            yield line
        elif name not in done:
            yield from made[name]
        done.add(name)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
