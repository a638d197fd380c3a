"""Kernels inside `shard_map`, as programs across processes have them: nobody divides their values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from graphc.lowering import scattering, sharding


@pytest.mark.parametrize(
    "kernel", [scattering.even, lambda x: sharding.shard(x, (None, ())), lambda x: sharding.shard(x, (("ranks",), ()))]
)
def test_values_of_a_process_are_left_alone(kernel):
    mesh = jax.make_mesh((1,), ("ranks",))
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    everywhere = PartitionSpec()
    f = jax.shard_map(kernel, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False)
    np.testing.assert_array_equal(jax.jit(f)(jnp.asarray(x)), x)
