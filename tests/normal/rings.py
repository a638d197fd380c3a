"""Forms evaluated as they are defined, in the ring of the integers modulo 2^64: equal bits or unequal, no tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.normal.affine import Index
from graphc.normal.form import Form


def value(form: Form, arrays: Mapping[int, np.ndarray], dtype: Any = np.int64) -> np.ndarray:
    """The array that `form` stands for."""
    result = np.zeros(form.shape, dtype)
    for term in form.terms:
        labels = np.indices(term.sizes).reshape(len(term.sizes), term.elements())

        def at(places: tuple[Index, ...], labels: np.ndarray = labels) -> tuple[np.ndarray, ...]:
            n = labels.shape[1]
            return tuple([sum((labels[k] * s for k, s in p.steps), np.full(n, p.offset)) for p in places])

        product = np.full(labels.shape[1], dtype(_wrapped(term.coefficient) if dtype is np.int64 else term.coefficient))
        for factor in term.factors:
            places = at(factor.places)
            for place, n in zip(places, arrays[factor.atom].shape, strict=True):
                assert ((place >= 0) & (place < n)).all(), "a place outside the array"
            product = product * arrays[factor.atom][places]
        places = [np.zeros(labels.shape[1], int), *at(term.places)]  # a first axis, for results that have none
        np.add.at(result[None], tuple(places), product)
    return result


def _wrapped(coefficient: int) -> int:
    return (coefficient + 2**63) % 2**64 - 2**63


def integers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Any numbers of 64 bits: products wrap around."""
    return rng.integers(-(2**63), 2**63 - 1, shape, endpoint=True)
