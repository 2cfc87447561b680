"""Labelled examples: where they come from, which of them train, and how they are normalised.

A `Source` is data as stored (embedded MNIST-16, an idx folder or an npz file); its `split` makes a
`Dataset` of normalised training, validation and test examples.
"""

from tempernet.data.embedded import mnist16
from tempernet.data.examples import Dataset, Examples
from tempernet.data.idx import read_idx
from tempernet.data.indices import read_indices
from tempernet.data.inputs import read_inputs
from tempernet.data.npz import read_npz
from tempernet.data.source import Source

__all__ = [
    "Dataset",
    "Examples",
    "Source",
    "mnist16",
    "read_idx",
    "read_indices",
    "read_inputs",
    "read_npz",
]
