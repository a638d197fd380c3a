"""The layers of installed packages are traced like the user's own."""

from __future__ import annotations

import sys

import pytest

import eager as torch
import graphc
from graphc.capture.state.environment import Environment
from graphc.capture.state.owners import is_user_file
from tests.installed.programs import FOLDER, PROGRAMS, package
from tests.scenarios.harness import check

pytestmark = pytest.mark.on_numpy


@pytest.fixture(autouse=True)
def eager_is_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch)  # as users do whose packages say `import torch`


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_does_what_eager_does(name: str) -> None:
    assert check(PROGRAMS[name]) == ""


def test_a_package_is_read_if_it_is_written_for_tensors() -> None:
    import numpy as np

    package()
    sys.path.insert(0, str(FOLDER))
    try:
        import plainkit  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(FOLDER))
    read = {name: is_user_file(sys.modules[name].__file__ or "") for name in ("axeskit", "axeskit.functional")}
    assert read == {"axeskit": True, "axeskit.functional": True}
    for module in (plainkit, np, sys.modules["json"], pytest):
        assert not is_user_file(module.__file__ or "")


def test_a_step_is_traced_again_only_for_what_the_package_has_filled() -> None:
    axeskit, _ = package()
    f = graphc.compile(lambda x: axeskit.rearrange(x, "a b -> b a"))
    for _ in range(6):
        f(torch.ones(2, 3))
    assert str(f.explain()).count("because:") == 2  # its caches of backends were empty; the counter of its calls moves
    assert "_by_type" in f.explain()


def test_only_what_the_code_reads_is_guarded() -> None:
    axeskit, _ = package()
    guarded = [str(p.path.shown) for p in Environment(lambda x: axeskit.rearrange(x, "a b -> b a"))._guarded]
    assert any("FACTOR" in shown for shown in guarded)
    assert not any("sys.modules" in shown or ("__code__" in shown and "rearrange" in shown) for shown in guarded)
    assert len(guarded) < 120


@pytest.mark.usefixtures("einops_loaded_anew")
def test_a_vision_transformer_with_einops() -> None:
    einops = pytest.importorskip("einops")
    layers = pytest.importorskip("einops.layers.torch")
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, 16)

        def forward(self, x):
            q, k, v = (einops.rearrange(t, "b n (h d) -> b h n d", h=2) for t in self.qkv(x).chunk(3, dim=-1))
            return self.out(einops.rearrange((q @ k.mT / 2).softmax(-1) @ v, "b h n d -> b n (h d)"))

    def train(compile) -> list[float]:
        torch.manual_seed(0)
        embed = nn.Sequential(layers.Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4), nn.Linear(48, 16))
        token, place = nn.Parameter(torch.randn(1, 1, 16)), nn.Parameter(torch.randn(1, 5, 16))
        attention, head = Attention(), nn.Linear(16, 5)
        parts = [*embed.parameters(), *attention.parameters(), *head.parameters(), token, place]
        optimizer = torch.optim.AdamW(parts, lr=0.01)

        @compile
        def step(image, label):
            optimizer.zero_grad()
            x = embed(image)
            x = torch.cat((einops.repeat(token, "1 1 d -> b 1 d", b=len(x)), x), dim=1)
            x += place
            loss = nn.functional.cross_entropy(head(einops.reduce(attention(x), "b n d -> b d", "mean")), label)
            loss.backward()
            optimizer.step()
            return loss

        image, label = torch.randn(6, 3, 8, 8), torch.randint(0, 5, (6,))
        return [step(image[:n], label[:n]).item() for n in (6, 6, 4, 6)]

    assert train(graphc.compile) == pytest.approx(train(lambda f: f), rel=1e-4)
