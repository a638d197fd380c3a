"""Images that are resized, or pooled over uneven windows: a pixel matters where it is in the sum, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from eager.nn import functional as F

CASES = {
    "bilinear": lambda x: F.interpolate(x, (11, 40), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic"),
    "corners": lambda x: F.interpolate(x, (5, 20), mode="bilinear", align_corners=True),
    "antialiased": lambda x: F.interpolate(x, (6, 7), mode="bicubic", antialias=True),
    "pooled": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
}


@pytest.mark.parametrize("resize", CASES.values(), ids=CASES)
@pytest.mark.parametrize("shape", [(1, 2, 8, 9), (1, 1, 8, 150)], ids=["short", "long"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_pixel_that_is_not_finite_spreads_to_what_depends_on_it(resize, shape, value):
    pixel = torch.zeros(shape)
    pixel[0, 0, 3, 8] = 1.0
    depends = (resize(pixel) != 0).numpy()
    assert depends.any() and not depends.all()
    image = torch.from_numpy(np.random.default_rng(0).normal(size=shape)).float()
    plain, image[0, 0, 3, 8] = resize(image), value
    for run in (resize, graphc.compile(resize)):
        found = run(image).numpy()
        assert not np.isfinite(found[depends]).any()
        # PyTorch multiplies the neighbor in front by a weight of 0 where places meet
        assert np.isfinite(found[~depends]).mean() > 0.9
        kept = np.isfinite(found)
        np.testing.assert_allclose(found[kept], plain.numpy()[kept], rtol=1e-4, atol=1e-6)
