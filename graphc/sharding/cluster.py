"""Cluster: the devices that a program is thought to run on, and what it takes them to exchange something."""

from __future__ import annotations

import math
from typing import NamedTuple, final

from graphc.sharding.collectives import Collective
from graphc.sharding.mesh import Mesh


@final
class Cluster(NamedTuple):
    """devices     how many there are, and `per_host` how many of them on one host, next to each other in the mesh
    flops       operations a second of one device in products; what is reached, not what is advertised
    bandwidth   bytes a second between a device and its memory
    memory      bytes of one device
    link        bytes a second that a device sends to another one on its host, and `network` to one elsewhere
    latency     seconds for each step of an exchange
    reduce_scatter  whether the compiler makes a reduce-scatter of a sum of which a device needs a part (XLA does on
                GPU and TPU, not on the CPU)
    overlap     the part of the exchanges that goes on while devices compute, 0 to 1
    """

    devices: int
    flops: float
    bandwidth: float
    memory: float
    link: float
    network: float = 0.0
    per_host: int = 0
    latency: float = 5e-6
    reduce_scatter: bool = True
    overlap: float = 0.0

    def seconds(self, c: Collective, mesh: Mesh) -> float:
        """What a collective takes, by rings: each device sends (n - 1) / n of the bytes, twice for an all-reduce."""
        n = mesh.count(c.axes) if c.axes else mesh.size
        if n == 1:
            return 0.0
        steps = (n - 1) * (2 if c.kind == "all-reduce" else 1)
        rate = self.link if self._on_one_host(c.axes, mesh) else self.network or self.link
        return c.times * (steps * self.latency + steps / n * c.bytes / rate)

    def _on_one_host(self, axes: tuple[str, ...], mesh: Mesh) -> bool:
        if not self.per_host or mesh.size <= self.per_host:
            return True
        if not axes:
            return False
        first = min(mesh.names.index(axis) for axis in axes)
        return math.prod(mesh.shape[first:]) <= self.per_host


# reached on large products in 16 bits and 8 devices a host: about half of what the vendors state (312 and 990 TFLOP/s)
A100 = Cluster(8, 150e12, 1.6e12, 80e9, 250e9, 20e9, 8)
H100 = Cluster(8, 450e12, 2.6e12, 80e9, 400e9, 40e9, 8)
V100 = Cluster(8, 60e12, 0.8e12, 32e9, 100e9, 10e9, 8)
