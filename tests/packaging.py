"""The wheel and the source archive, built, and tried in fresh environments outside of the tree.

    python -m tests.packaging [python ...]

For each Python (by default the one that runs this) an environment is made, the wheel is installed with what it needs,
and `TRIAL` runs there, in another folder. Then the same from the source archive. Exits with 1 if anything fails.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRIAL = """
import sys, pathlib
import compare, eager as torch, graphc
assert "site-packages" in graphc.__file__, graphc.__file__
for package in (compare, torch, graphc):
    assert (pathlib.Path(package.__file__).parent / "py.typed").exists(), package
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
x, y = torch.randn(16, 4), torch.randn(16, 1)

@graphc.compile
def step(x, y):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss

losses = [step(x, y).item() for _ in range(20)]
assert losses[-1] < losses[0]
assert compare.check(lambda x: (x @ x.T).tanh().sum(), x, modes=["graph", "compiled"]).ok
print("Python", sys.version.split()[0], "graphc", graphc.__version__, "loss", round(losses[-1], 4))
"""


def run(*command: object, folder: Path) -> str:
    return subprocess.run([*map(str, command)], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive, in `folder`."""
    environment = folder / "build"
    run(sys.executable, "-m", "venv", environment, folder=folder)
    run(environment / "bin/pip", "install", "--quiet", "build", folder=folder)
    run(environment / "bin/python", "-m", "build", "--outdir", folder, ROOT, folder=folder)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "examples/"))], "more than packages"
    with tarfile.open(archive) as sources:
        assert any(name.endswith("/README.md") for name in sources.getnames())
    return wheel, archive


def tried(python: str, what: Path, folder: Path) -> str:
    """What `TRIAL` prints with `what` installed."""
    environment = folder / f"{Path(python).name}-{what.suffix[1:]}"
    run(python, "-m", "venv", environment, folder=folder)
    run(environment / "bin/python", "-m", "pip", "install", "--quiet", what, folder=folder)
    text = run(environment / "bin/python", "-W", "error", "-c", TRIAL, folder=folder)
    return text + run(environment / "bin/graphc", "--version", folder=folder)


def main(pythons: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what in built(folder):
            for python in pythons or [sys.executable]:
                try:
                    print(f"{what.name}: {tried(python, what, folder)}", end="", flush=True)
                except subprocess.CalledProcessError as error:
                    print(f"{what.name}, {python}: {error}", file=sys.stderr)
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
