"""Words of the small print: the run, its protocol, its verdict and what to do about it.

Everything that figures and pages say of a verdict in words is made by one function here.
"""

from __future__ import annotations

from typing import Protocol

from tempernet.config import RunSettings
from tempernet.diagnostics.thermo import BestTemperature
from tempernet.diagnostics.verdict import Verdict
from tempernet.report import sentences
from tempernet.results.evidence import EvidenceResults


class Titled(Protocol):
    """A run that says what it is."""

    @property
    def title(self) -> str:
        """Network, data and method in a few words."""

    @property
    def settings(self) -> RunSettings:
        """What it was run with."""


class Judged(Titled, Protocol):
    """A run with a verdict."""

    @property
    def verdict(self) -> Verdict:
        """Whether its rungs have equilibrated."""

    @property
    def parameter(self) -> str:
        """What its rungs are values of."""

    @property
    def finished(self) -> bool:
        """Whether it has come to its end."""


def named(run: Titled) -> str:
    """The title of a run, with its protocol."""
    protocol = f"{run.settings.protocol} protocol"
    return run.title if protocol in run.title else f"{run.title}, {protocol}"


def note(run: Judged) -> str:
    """Network, data, protocol and verdict of a run."""
    going = "" if run.finished else "; the run has not finished"
    return f"{named(run)}: {verdict(run)}{going}"


def verdict(run: Judged) -> str:
    """The verdict on a run in a line."""
    return sentences.headline(run.verdict, run.parameter)


def advice(run: Judged) -> list[str]:
    """What to do about a run that has not equilibrated."""
    return [sentences.advice(each, run.parameter) for each in run.verdict.advice]


def best(found: BestTemperature) -> str:
    """Where the loss is least, and whether that is resolved."""
    return sentences.best_temperature(found)


def disagreements(run: EvidenceResults) -> list[str]:
    """Which estimators of an evidence disagree."""
    return [sentences.disagreement(each) for each in run.disagreements]
