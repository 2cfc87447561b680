"""Eight CPU devices for every test, strict promotion, and where the optional shared folder is."""

from pathlib import Path

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the paper and MNIST's own files, beside the repository; skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the folder ../shared with MNIST's idx files and the paper's indices is absent")
    return SHARED
