"""An evidence in Python: what `log_evidence` returns, and `load` from one made by the command."""

from __future__ import annotations

from dataclasses import dataclass

from tempernet.report.evidence import estimator_table, statements
from tempernet.report.terminal import as_text
from tempernet.results.evidence import EvidenceResults


@dataclass(frozen=True, eq=False, repr=False)
class Evidence(EvidenceResults):
    """A log evidence and what it was worked out from; it prints as a short table.

    `log_evidence` is the number with its error, `trusted` says whether to believe it, and
    `log_integrals` has every estimator. The other fields are those of
    `tempernet.results.evidence.EvidenceResults`.
    """

    def __repr__(self) -> str:
        """The estimators side by side, the evidence and the verdict."""
        return as_text(self.title, estimator_table(self), statements(self))
