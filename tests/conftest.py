"""Eight CPU devices for every test, strict promotion, own caches, and the shared folder."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tempernet

# Before JAX is imported, which would set a level of logging that the commands that tests run
# would inherit.
tempernet.configure(devices=8)

import jax  # noqa: E402
import pytest  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

SHARED = Path(__file__).resolve().parents[2] / "shared"
PROGRAMS = "JAX_COMPILATION_CACHE_DIR"


def pytest_configure(config: pytest.Config) -> None:
    """Programs that a test compiles are kept for the next, until the end or where the environment
    says.

    The same engines are built again and again, and compiling is most of the time. Other processes
    of pytest and the commands that tests run find the folder in their environment.
    """
    if PROGRAMS not in os.environ:
        os.environ[PROGRAMS] = tempfile.mkdtemp(prefix="tempernet-programs-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(PROGRAMS), ignore_errors=True))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    jax.config.update(PROGRAMS.lower(), os.environ[PROGRAMS])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests measure tiles themselves, once, and leave the user's cache alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def quick_programs() -> Iterator[None]:
    """A module's programs are compiled in half the time, and its commands find those of this
    process: for what depends on the numbers, but not on how fast they come.
    """
    name = "jax_disable_most_optimizations"
    before = bool(jax.config.values[name])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name.upper(), "1")
        # A program that is kept belongs to so many devices.
        patch.setenv("TEMPERNET_DEVICES", str(jax.local_device_count()))
        jax.config.update(name, True)
        yield
        jax.config.update(name, before)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the paper and MNIST's own files, beside the repository; skip where it is
    absent.
    """
    if not SHARED.is_dir():
        pytest.skip("the folder ../shared with MNIST's idx files and the paper's indices is absent")
    return SHARED
