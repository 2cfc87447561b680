"""What a user calls from Python: `sample`, `log_evidence`, and `load`."""

from tempernet.api.evidence import log_evidence
from tempernet.api.evidences import Evidence
from tempernet.api.load import load
from tempernet.api.sample import sample
from tempernet.api.samples import Samples

__all__ = ["Evidence", "Samples", "load", "log_evidence", "sample"]
