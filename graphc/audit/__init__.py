"""Which equations between small programs the optimizer does not know: found by machine, ranked, with their licence."""

from graphc.audit.report import Audit, audit
from graphc.audit.vocabulary import VOCABULARIES, Vocabulary, vocabulary

__all__ = ["VOCABULARIES", "Audit", "Vocabulary", "audit", "vocabulary"]
