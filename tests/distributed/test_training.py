"""Training on several processes comes to what training on one does, with the whole batch; in both modes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.jobs import results

EVERY = "mlp,cnn,recurrent,mlp:compiled,cnn:compiled,recurrent:compiled"


@pytest.mark.deep  # the quick suite has a compiled step of two processes, in test_meshes.py
@pytest.mark.parametrize(("size", "models"), [(2, EVERY), (4, EVERY)])
def test_training(size: int, models: str, tmp_path: Path):
    for rank, messages in enumerate(results("training_job", size, tmp_path, models)):
        unfinished, other, needless = messages
        assert "Expected to have finished reduction in the prior iteration" in unfinished
        assert f"Parameter indices which did not receive grad for rank {rank}: 2 3 4 5" in unfinished
        assert "appears not to match sizes of the same param in process" in other
        assert "doesn't have any parameter that requires a gradient" in needless
