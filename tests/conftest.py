"""Eight CPU devices for every test, strict promotion, a cache of its own, and where the optional shared folder is."""

import os
from collections.abc import Iterator
from pathlib import Path

# JAX would set another level, which the commands that tests run would inherit.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests measure tiles themselves, once, and leave the user's cache alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the paper and MNIST's own files, beside the repository; skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the folder ../shared with MNIST's idx files and the paper's indices is absent")
    return SHARED


@pytest.fixture(scope="session")
def shared_compilations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that the command compiles are kept for the next test, where the environment says or until the end."""
    with pytest.MonkeyPatch.context() as patch:
        if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
            patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        yield
