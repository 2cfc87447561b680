"""The run folder: what a run writes, readable while it runs, and enough to resume it.

config.toml, provenance.json, status.json, log.txt; `rounds/` holds append-only chunks of records
and their manifest, `weights/` thinned samples, `checkpoints/` the last complete states. First the
chunk, then the manifest, then the checkpoint: what lies past the checkpoint is cut off on resume.
Nothing is pickled.
"""

from tempernet.store.checkpoints import Checkpoints
from tempernet.store.folder import RunFolder
from tempernet.store.records import Records

__all__ = ["Checkpoints", "Records", "RunFolder"]
