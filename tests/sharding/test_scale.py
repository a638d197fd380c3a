"""One program on one device, on eight, and in two processes: the same losses, also from each other's checkpoints."""

from __future__ import annotations

import pytest

from benchmarks import scale


def _report(losses: list[float]) -> scale.Scale:
    base = scale.Ran([3.0, 2.0], [1.0, 1.0], None, None)
    other = scale.Ran(losses, [1.0, 2.0], {"all-reduce": (1, 8)}, {"all-reduce": (2, 16)})
    relay = [("1 device", base._replace(losses=[3.0])), ("8 devices", base._replace(losses=losses[1:]))]
    return scale.Scale({"1 device": base, "8 devices": other}, relay)


def test_the_report_tells_equal_losses_from_others():
    same = _report([3.0, 2.00001])
    assert same.ok and "the same losses" in same.text() and "2 (16 B)" in same.text()
    other = _report([3.0, 2.0001])
    assert not other.ok and "other losses" in other.text()
    assert other.off("8 devices") == pytest.approx(5e-5) and other.relay_off == [0, pytest.approx(5e-5)]


def test_two_processes_go_on_where_one_was():
    report = scale.measured(["1 device, eager"], ["1 device, eager", "2 processes, eager"], 2, 1)
    assert report.ok, report.text()
    assert [len(run.losses) for _, run in report.relay] == [1, 1]


@pytest.mark.deep
def test_devices_and_processes_go_on_where_the_other_was():
    report = scale.measured([*scale.WAYS], scale.RELAY, 12, 2)
    assert report.ok, report.text()
    for way, run in report.straight.items():
        if run.predicted is not None and run.real is not None:
            predicted, real = (sum(size for _, size in found.values()) for found in (run.predicted, run.real))
            assert predicted == pytest.approx(real, rel=0.1), (way, run.predicted, run.real)
