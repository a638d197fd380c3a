"""`torch.backends.cpu`: what the processor can do."""


def get_cpu_capability() -> str:
    """The widest instructions of the processor that NumPy knows of: "AVX512", "AVX2" or "DEFAULT".

    As `torch.backends.cpu.get_cpu_capability`. torchvision asks whether images of bytes are resized as bytes.
    """
    from numpy._core._multiarray_umath import __cpu_features__ as features  # type: ignore[attr-defined]

    found = (name for name, feature in (("AVX512", "AVX512_SKX"), ("AVX2", "AVX2")) if features.get(feature))
    return next(found, "DEFAULT")
