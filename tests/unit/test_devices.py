"""Importing tempernet changes nothing; `configure` sets devices up; what is not set up is said once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tempernet as tn
from tempernet.devices import setup

UNCHANGED = """
import logging, os, sys, warnings
import jax

def state():
    settings = {name: getattr(jax.config, name) for name in jax.config.values}
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
for name in tempernet.__all__:
    getattr(tempernet, name)
after_all = state()
for part, old, new, newest in zip(
    ("environment", "jax", "loggers", "root", "filters", "argv"), before, after_import, after_all
):
    assert old == new, part
    assert part == "loggers" or old == newest, part
assert all(after_all[2][name] == old for name, old in before[2].items())
print("unchanged")
"""
COUNTED = """
import tempernet, warnings
tempernet.configure({argument})
import jax
print(jax.device_count(), "collective_call_terminate" in __import__("os").environ["XLA_FLAGS"])
"""
CAUGHT = """
import os, warnings
os.sched_getaffinity = lambda pid: set(range(4))
import tempernet
from tempernet.devices.mesh import make_mesh
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
{body}
for each in caught:
    print(f"{{each.category.__name__}}: {{each.message}}")
print("end")
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


def warned(body: str, **variables: str) -> list[str]:
    """The warnings of a few lines on a machine of four cores."""
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    done = run(CAUGHT.format(body=indented), **variables)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "end", done.stderr
    return done.stdout.splitlines()[:-1]


def test_importing_changes_nothing_in_the_process() -> None:
    done = run(UNCHANGED)
    assert done.returncode == 0 and done.stdout.strip() == "unchanged", done.stderr


def test_importing_alone_does_not_load_jax() -> None:
    done = run("import sys, tempernet, tempernet.cli.app; print('jax' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize(
    ("argument", "variables", "number"),
    [
        ("devices=3", {}, 3),
        ("3", {"TEMPERNET_DEVICES": "2"}, 3),
        ("", {"TEMPERNET_DEVICES": "2"}, 2),
        ("", {"JAX_NUM_CPU_DEVICES": "5"}, 5),
        ("", {"XLA_FLAGS": "--xla_force_host_platform_device_count=6"}, 6),
        ("", {}, min(setup.cores(), setup.MAX_DEVICES)),
    ],
)
def test_configure_sets_the_number_of_devices(
    argument: str, variables: dict[str, str], number: int
) -> None:
    done = run(COUNTED.format(argument=argument), **variables)
    assert done.stdout.strip() == f"{number} True", done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("devices", [0, 9, -1, 1.5, "two", True])
def test_a_number_of_devices_is_checked(devices: object) -> None:
    with pytest.raises(tn.ConfigError, match="devices must be a whole number"):
        tn.configure(devices)  # type: ignore[arg-type]


def test_a_process_that_nobody_configured_is_told_once_what_that_costs() -> None:
    (said,) = warned("make_mesh()\nmake_mesh()\ntempernet.configure()")
    assert said.startswith("DevicesWarning: ") and "1 of 4 cores" in said
    assert "tempernet.configure()" in said


def test_configuring_too_late_is_told_once() -> None:
    (said,) = warned(
        "import jax; jax.devices()\ntempernet.configure()\ntempernet.configure()\nmake_mesh()"
    )
    assert "JAX had started with 1 of 4 devices" in said and "before" in said


def test_several_devices_that_do_not_wait_for_each_other_are_told() -> None:
    (said,) = warned("make_mesh()", JAX_NUM_CPU_DEVICES="2")
    assert "40 s" in said and "tempernet.configure()" in said
    assert len(warned("make_mesh(2)", JAX_NUM_CPU_DEVICES="2")) == 1


@pytest.mark.parametrize(
    ("body", "variables"),
    [
        ("tempernet.configure()\nmake_mesh()", {}),
        ("make_mesh(1)", {}),
        ("make_mesh()", {"JAX_NUM_CPU_DEVICES": "1"}),
        ("make_mesh()", {"XLA_FLAGS": "--xla_force_host_platform_device_count=1"}),
        ("import jax; jax.devices()\ntempernet.configure(1)", {}),
    ],
    ids=["configured", "one asked for", "one by JAX", "one by XLA", "late, but the same"],
)
def test_who_asked_is_not_told(body: str, variables: dict[str, str]) -> None:
    assert warned(body, **variables) == []


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
