"""Loading JAX."""

from __future__ import annotations

import subprocess
import sys


def test_numpys_generator_goes_on_where_it_was():
    code = (
        "import numpy as np; np.random.seed(0); import eager as torch, graphc; "
        "graphc.compile(lambda x: x + 1)(torch.ones(2)); assert 'jax' in __import__('sys').modules; "
        "found = np.random.rand(); np.random.seed(0); assert found == np.random.rand()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
