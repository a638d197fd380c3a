"""Transforms, windows, special functions, random numbers."""

import math

import eager as torch
from eager import fft, special

t = torch.linspace(0, 1, 100)
signal = torch.sin(2 * math.pi * 5 * t) + 0.1 * torch.randn(100)
spectrum = fft.rfft(signal, norm="ortho")
print(spectrum.abs().argmax(), fft.rfftfreq(100, d=0.01)[5], fft.irfft(spectrum, n=100).dtype)
image = torch.rand(8, 8)
print(fft.ifft2(fft.fft2(image)).real.sub(image).abs().max(), fft.fftshift(image, dim=(0, 1)))
stft = torch.stft(signal, n_fft=16, window=torch.hann_window(16), return_complex=True)
print(stft.shape, torch.view_as_real(stft).shape, torch.polar(t, t).angle())
print(special.expit(t), special.gammaln(t + 1), special.logsumexp(t, 0), special.zeta(2.0, t + 1))
generator = torch.Generator()
generator.manual_seed(3)
print(torch.rand(2, 3, generator=generator), torch.normal(0.0, 1.0, (2,)), torch.randperm(5).tolist())
print(torch.bernoulli(torch.full((3,), 0.5)).bool(), torch.arange(0, 1, 0.1), torch.logspace(0, 2, 3))
z = torch.complex(t, t)
print(z.real, z.conj(), z * 1j, torch.is_complex(z))
fft.rfft(signal, normalize=True)  # error: reportCallIssue
fft.rfft([1.0])  # error: reportArgumentType
fft.fft3(signal)  # error: reportAttributeAccessIssue
special.nosuch(t)  # error: reportAttributeAccessIssue
torch.linspace(0)  # error: reportCallIssue
torch.arange("3")  # error: reportArgumentType
torch.stft(signal)  # error: reportCallIssue
generator.seeds()  # error: reportAttributeAccessIssue
