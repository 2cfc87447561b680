"""Diagnostics of draws: means with errors, replica flow, memory, and the verdict."""

from tempernet.diagnostics.flow import Flow
from tempernet.diagnostics.reasons import Action, Advice, Kind, Reason
from tempernet.diagnostics.statistics import Estimate, average, effective_sample_size, split_rhat
from tempernet.diagnostics.verdict import Verdict, judge

__all__ = [
    "Action",
    "Advice",
    "Estimate",
    "Flow",
    "Kind",
    "Reason",
    "Verdict",
    "average",
    "effective_sample_size",
    "judge",
    "split_rhat",
]
