"""Build the embedded mnist16.xz from a folder of MNIST's idx files.

Usage: python scripts/build_mnist16.py SRC_FOLDER [OUT]
"""

import argparse
import hashlib
import lzma
import sys
from pathlib import Path

from tempernet.data import read_idx
from tempernet.data.embedded import FILE_NAME, FILE_SHA256, SIDE
from tempernet.data.normalise import MNIST_MEAN_STD
from tempernet.errors import DataError

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "src" / "tempernet" / "data" / FILE_NAME

# Measured on this payload: 6.6 MB, unpacked in 0.4 s. More context from the pixel before (lc) and
# none from the byte's address (pb) is a little smaller than the default; one pixel of all images
# after another is 6 % larger.
FILTERS = [
    {
        "id": lzma.FILTER_LZMA2,
        "preset": 6,
        "lc": 4,
        "lp": 0,
        "pb": 0,
        "dict_size": 2**25,
        "nice_len": 273,
    }
]


def build_payload(folder: Path) -> bytes:
    """The images resized to 16 x 16, training set first, then their labels, a byte each.

    Args:
        folder: holds MNIST's four idx files.
    """
    source = read_idx(folder, size=SIDE)
    if source.mean_std != MNIST_MEAN_STD:
        raise DataError(
            f"{folder} is not MNIST: its training labels differ; "
            "give the folder of MNIST's idx files"
        )
    parts = (source.x_train, source.x_test, source.y_train.astype("u1"), source.y_test.astype("u1"))
    return b"".join(part.tobytes() for part in parts)


def main() -> int:
    """Write the file and say whether it is the one that the package expects."""
    parser = argparse.ArgumentParser(
        description="Build the embedded mnist16.xz from MNIST's idx files."
    )
    parser.add_argument(
        "src_folder", type=Path, help="folder with MNIST's four idx files, plain or gzipped"
    )
    parser.add_argument(
        "out",
        type=Path,
        nargs="?",
        default=DEFAULT_OUT,
        help="file to write (default: the package's)",
    )
    arguments = parser.parse_args()
    try:
        payload = build_payload(arguments.src_folder)
    except DataError as error:
        print(f"DataError: {error}", file=sys.stderr)
        return 1
    content = lzma.compress(payload, format=lzma.FORMAT_XZ, filters=FILTERS)
    arguments.out.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    print(f"{arguments.out}: {len(content)} bytes, SHA-256 {digest}")
    if digest != FILE_SHA256:
        print(
            f"The package expects {FILE_SHA256}: to ship this file, set FILE_SHA256 in embedded.py."
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
