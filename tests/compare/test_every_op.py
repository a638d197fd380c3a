"""Every op in every mode, with all dtypes, layouts and special places that `check_op` knows: no alarm."""

import pytest

import compare
import eager as torch
from compare.judging.tolerance import Verdict
from graphc.ops import OPS

ON_A_MESH = {"local_map"}


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(OPS.keys() - ON_A_MESH))
def test_op_means_the_same_in_every_mode(name: str):
    report = compare.check_op(name)
    assert report.ok, str(report)


def test_op_that_runs_graphs_on_a_mesh_only():
    with pytest.raises(ValueError, match="check a function that uses it"):
        compare.check_op("local_map")


def test_op_that_runs_graphs():
    report = compare.check_op("while_loop", modes=["graph"])
    assert report.ok and len(report.reports) == 1


def test_sum_with_infinite_terms_is_no_number_in_any_order():
    """The quotient is taken out of the sum: 0/0 + 1/0 is nan, (0 + 1)/0 is infinite."""
    x, y = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0, 2.0]], requires_grad=True)
    report = compare.check(lambda x, y: torch.xlogy(x, y).sum(), x, y, modes=["compiled"])
    assert report.verdict is Verdict.CONVENTION, str(report)
