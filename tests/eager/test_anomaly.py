"""Anomaly mode: which node, which output, which line; and that it leaves nothing behind."""

import warnings

import pytest

import eager as torch


def test_it_names_the_node_and_the_line():
    x = torch.tensor([-1.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            y = torch.sqrt(x)  # the line that the warning shows
            with pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output\."):
                y.backward()
    text = str(caught[-1].message)
    assert "Error detected in SqrtBackward0. Traceback of forward call that caused the error:" in text
    assert "the line that the warning shows" in text and __file__ in text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "node"),
    [
        (lambda x: x / x, "DivBackward0"),
        (lambda x: (x * 0).log() * 0, "LogBackward0"),
        (lambda x: torch.where(x > 0, x, (x * 0 - 1).sqrt()), "SqrtBackward0"),
        (lambda x: (x * 0).norm() * float("nan"), "MulBackward0"),
    ],
)
def test_every_nan_is_found(make, node):
    x = torch.zeros(2, requires_grad=True)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match=f"Function '{node}' returned nan"):
        make(x).sum().backward()
    assert not torch.is_anomaly_enabled()


def test_gradients_are_the_same():
    def gradient():
        x = torch.tensor([0.5, 1.5], requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: g * 3)
        (y.exp() * x).sum().backward()
        return x.grad.tolist()

    with torch.autograd.set_detect_anomaly(True):
        found = gradient()
    assert found == gradient()


def test_writes_behind_the_back_are_noticed():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x.exp()
        y.data.fill_(100.0)
        with pytest.raises(RuntimeError, match="modified without autograd's knowledge"):
            y.sum().backward()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_mode_nests(enabled):
    with torch.autograd.set_detect_anomaly(enabled):
        with torch.autograd.set_detect_anomaly(not enabled, check_nan=False):
            assert torch.is_anomaly_enabled() is not enabled and not torch.is_anomaly_check_nan_enabled()
        assert torch.is_anomaly_enabled() is enabled and torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()
