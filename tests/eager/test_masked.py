"""What `torch.masked` refuses, as PyTorch does."""

from __future__ import annotations

import pytest

import eager as torch

MASK = torch.tensor([True, False])


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin"])
def test_bools_have_no_least_and_no_largest(name: str) -> None:
    function = getattr(torch.masked, name)
    with pytest.raises(NotImplementedError, match=f"identity of {name} on torch.bool input"):
        function(torch.tensor([True, True]), 0, mask=MASK)
    assert function(torch.tensor([1, 5]), 0, mask=MASK).item() == (0 if name.startswith("arg") else 1)


def test_means_of_integers_need_a_dtype() -> None:
    with pytest.raises(ValueError):
        torch.masked.mean(torch.tensor([1, 5]), 0, mask=MASK)
    assert torch.masked.mean(torch.tensor([1, 5]), 0, mask=MASK, dtype=torch.float32).item() == 1
