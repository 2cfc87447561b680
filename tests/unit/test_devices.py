"""Importing tempernet changes nothing, `configure` sets devices up, what is not is said once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tempernet as tn

UNCHANGED = """
import logging, os, sys, warnings
# What these change is theirs.
import jax, scipy.interpolate, scipy.sparse

def state():
    settings = {name: getattr(jax.config, name, None) for name in jax.config.values}
    loggers = {
        name: (logger.level, list(logger.handlers), logger.propagate, logger.disabled)
        for name, logger in logging.Logger.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and not name.startswith(OTHERS)
    }
    root = (logging.root.level, list(logging.root.handlers))
    return dict(os.environ), settings, loggers, root, list(warnings.filters), sys.argv[:]

OTHERS = ("matplotlib", "PIL", "asyncio", "concurrent", "xarray", "h5py", "pymbar", "arviz")
before = state()
import tempernet
after_import = state()
assert "tempernet.tempering" not in sys.modules
for name in tempernet.__all__:
    getattr(tempernet, name)
after_all = state()
for part, old, new, newest in zip(
    ("environment", "jax", "loggers", "root", "filters", "argv"), before, after_import, after_all
):
    assert old == new, part
    assert part == "loggers" or old == newest, part
assert all(after_all[2][name] == old for name, old in before[2].items())
from tempernet.devices.setup import _has_started
assert not _has_started()
print("unchanged")
"""
OUTCOME = """
import os, warnings
os.sched_getaffinity = lambda pid: set(range(4))
import tempernet
from tempernet.devices.mesh import make_mesh
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
{body}
import jax
print(jax.device_count(), "call_terminate_timeout" in os.environ.get("XLA_FLAGS", ""))
for each in caught:
    print(f"{{each.category.__name__}}: {{each.message}}")
"""


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, with nothing said about devices but this."""
    said = ("XLA_FLAGS", "TEMPERNET_DEVICES", "JAX_NUM_CPU_DEVICES")
    environment = {name: value for name, value in os.environ.items() if name not in said}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def outcome(body: str, **variables: str) -> tuple[str, list[str]]:
    """Devices, whether they wait for each other, and warnings, on a machine of four cores."""
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    done = run(OUTCOME.format(body=indented), **variables)
    assert done.returncode == 0, done.stderr
    devices, *warnings = done.stdout.splitlines()
    return devices, warnings


def test_importing_changes_nothing_in_the_process() -> None:
    done = run(UNCHANGED)
    assert done.returncode == 0 and done.stdout.strip() == "unchanged", done.stderr


def test_importing_alone_does_not_load_jax() -> None:
    done = run("import sys, tempernet, tempernet.cli.app; print('jax' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


FLAG = "--xla_force_host_platform_device_count=1"


@pytest.mark.parametrize(
    ("body", "variables", "devices"),
    [
        ("tempernet.configure()\nmake_mesh()", {}, "4 True"),
        ("tempernet.configure(devices=3)", {"TEMPERNET_DEVICES": "2"}, "3 True"),
        ("tempernet.configure()\nmake_mesh()", {"TEMPERNET_DEVICES": "2"}, "2 True"),
        ("tempernet.configure()", {"JAX_NUM_CPU_DEVICES": "5"}, "5 True"),
        ("tempernet.configure()\nmake_mesh()", {"XLA_FLAGS": FLAG}, "1 True"),
        ("make_mesh(1)\ntempernet.configure(1)", {}, "1 False"),
    ],
)
def test_who_asks_in_time_has_the_devices_and_no_warning(
    body: str, variables: dict[str, str], devices: str
) -> None:
    assert outcome(body, **variables) == (devices, [])


@pytest.mark.parametrize("devices", [0, 9, -1, 1.5, "two", True])
def test_a_number_of_devices_is_checked(devices: object) -> None:
    with pytest.raises(tn.ConfigError, match="devices must be a whole number"):
        tn.configure(devices)  # type: ignore[arg-type]


def test_a_process_that_nobody_configured_is_told_once_what_that_costs() -> None:
    devices, (said,) = outcome("make_mesh()\nmake_mesh()\ntempernet.configure()")
    assert devices == "1 False" and said.startswith("DevicesWarning: ")
    assert "1 of 4 cores" in said and "tempernet.configure()" in said


def test_configuring_too_late_is_told_once() -> None:
    devices, (said,) = outcome(
        "import jax; jax.devices()\ntempernet.configure()\ntempernet.configure()\nmake_mesh()"
    )
    assert devices == "1 False"
    assert "JAX had started with 1 of 4 devices" in said and "before" in said


def test_several_devices_that_do_not_wait_for_each_other_are_told() -> None:
    devices, (said,) = outcome("make_mesh(2)\nmake_mesh()", JAX_NUM_CPU_DEVICES="2")
    assert devices == "2 False" and "40 s" in said and "tempernet.configure()" in said


def test_the_public_names_are_those_that_a_type_checker_sees() -> None:
    import ast
    import inspect

    source = ast.parse(inspect.getsource(tn))
    block = next(node for node in source.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == sorted(tn.__all__)
    assert {name: f"tempernet.{module}" for name, module in tn._HOME.items()} == seen
    assert set(tn.__all__) <= set(dir(tn))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tn.nothing  # type: ignore[attr-defined] # noqa: B018
