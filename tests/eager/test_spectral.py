"""Fourier transforms: gradients by differences, adjoints, and compiled programs. Values: snippets/spectral.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager
import graphc
from eager.fft import NORMS
from tests.oracle import asked_of_torch, torch_or_skip

SIGNALS: dict[str, Any] = {
    "fft": lambda f, x: f.fft(x, dim=0, norm="ortho"),
    "ifft": lambda f, x: f.ifft(x, 5),
    "rfft": lambda f, x: f.rfft(x, norm="forward"),
    "irfft": lambda f, x: f.irfft(x, 6),
    "hfft": lambda f, x: f.hfft(x, 5, norm="ortho"),
    "ihfft": lambda f, x: f.ihfft(x, dim=0),
    "fft2": lambda f, x: f.fft2(x, s=(2, 5)),
    "rfft2": lambda f, x: f.rfft2(x, norm="ortho"),
    "irfft2": lambda f, x: f.irfft2(x, s=(3, 5)),
    "hfftn": lambda f, x: f.hfftn(x, norm="forward"),
    "ihfftn": lambda f, x: f.ihfftn(x),
    "rfftn": lambda f, x: f.rfftn(x, dim=(1, 0)),
    "ifftn": lambda f, x: f.ifftn(x, dim=(0,)),
}
REAL_ONLY = {"rfft", "ihfft", "rfft2", "ihfftn", "rfftn"}
CASES = [(name, kind) for name in SIGNALS for kind in (False, True) if not kind or name not in REAL_ONLY]


def numbers(complex_input: bool, rng: np.random.Generator) -> np.ndarray:
    x = rng.standard_normal((3, 4))
    return x + 1j * rng.standard_normal((3, 4)) if complex_input else x


@asked_of_torch(("name", "complex_input"), CASES)
def test_values_and_gradients_are_pytorchs(name: str, complex_input: bool, rng: np.random.Generator):
    torch, x = torch_or_skip(), numbers(complex_input, rng)
    theirs, mine = torch.tensor(x, requires_grad=True), eager.as_tensor(x.copy()).requires_grad_()
    a, b = SIGNALS[name](torch.fft, theirs), SIGNALS[name](eager.fft, mine)
    np.testing.assert_allclose(b.detach().resolve_conj().numpy(), a.detach().resolve_conj().numpy(), atol=1e-12)
    (a.abs() ** 2 * torch.arange(a.numel()).reshape(a.shape)).sum().backward()
    (b.abs() ** 2 * eager.arange(b.numel()).reshape(b.shape)).sum().backward()
    np.testing.assert_allclose(mine.grad.resolve_conj().numpy(), theirs.grad.resolve_conj().numpy(), atol=1e-10)


@pytest.mark.parametrize("name", SIGNALS)
def test_compiled_programs_transform_alike(name: str, rng: np.random.Generator):
    x = eager.as_tensor(numbers(False, rng))
    energy = graphc.compile(lambda t: (SIGNALS[name](eager.fft, t).abs() ** 2).sum())
    expected = (SIGNALS[name](eager.fft, x).abs() ** 2).sum()
    assert float(energy(x)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_an_inverse_undoes_its_transform(norm: str | None, rng: np.random.Generator):
    x = eager.as_tensor(numbers(False, rng))
    for forward, back in ((eager.fft.fftn, eager.fft.ifftn), (eager.fft.ihfftn, eager.fft.hfftn)):
        np.testing.assert_allclose(back(forward(x, norm=norm), norm=norm).real.numpy(), x.numpy(), atol=1e-12)
    half = eager.fft.rfftn(x, norm=norm)
    np.testing.assert_allclose(eager.fft.irfftn(half, x.shape, norm=norm).numpy(), x.numpy(), atol=1e-12)


def test_short_time_transforms_compile(rng: np.random.Generator):
    x, window = eager.as_tensor(rng.standard_normal((2, 32))), eager.hann_window(8, dtype=eager.float64)

    def round_trip(t: Any) -> Any:
        spectrum = eager.stft(t, 8, 2, window=window, return_complex=True)
        return eager.istft(spectrum, 8, 2, window=window, length=32)

    np.testing.assert_allclose(round_trip(x).numpy(), x.numpy(), atol=1e-12)
    np.testing.assert_allclose(graphc.compile(round_trip)(x).numpy(), x.numpy(), atol=1e-12)
