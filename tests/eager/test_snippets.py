"""Programs print under eager what they print under PyTorch, to the character; but for what only rounding decides."""

import pytest

import eager
from tests.depth import one_in
from tests.eager.snippet_files import Snippet, difference, disagreement, every_snippet
from tests.oracle import asked_of_torch, torch_or_skip

SNIPPETS = list(every_snippet())


def _id(snippet: Snippet) -> str:
    return f"{snippet.area}: {snippet.title}"


@pytest.mark.parametrize("snippet", SNIPPETS, ids=_id)
def test_eager_prints_what_is_recorded(snippet: Snippet):
    assert snippet.expected, "record it: python -m tests.eager.snippet_files"
    assert not disagreement(snippet, eager, snippet.expected)


@asked_of_torch("snippet", one_in(8, SNIPPETS, _id))  # who writes a record asks PyTorch
def test_the_record_is_what_pytorch_prints(snippet: Snippet):
    assert not disagreement(snippet, torch_or_skip(), snippet.recorded or "")


@pytest.mark.parametrize("snippet", [s for s in SNIPPETS if s.own is not None], ids=_id)
def test_a_difference_that_was_decided_is_still_there(snippet: Snippet):
    assert snippet.own != snippet.recorded, "eager prints what PyTorch prints by now: drop the block"


def test_titles_are_unique():
    titles = [_id(s) for s in SNIPPETS]
    assert len(titles) == len(set(titles))


def test_every_program_is_one():
    assert [_id(s) for s in SNIPPETS if "SyntaxError" in (s.recorded or "")] == []


def test_a_wrong_character_is_noticed():
    assert difference("tensor([1., 2.])\n", "tensor([1., 2.0])\n")
