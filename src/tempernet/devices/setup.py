"""Setting up JAX's CPU devices, which has to be asked for and must come before JAX is first used.

JAX starts its devices when something is first computed, or the devices are asked for; from then on
their number stays. By default it starts one, which computes on few cores. Nothing here happens when
tempernet is imported: `configure` does it, and `warn_if_not_configured` says once what it costs
that nobody called it in time.
"""

from __future__ import annotations

import os
import warnings

from tempernet.errors import ConfigError, DevicesWarning, check_count

MAX_DEVICES = 8
PATIENCE = 10**8
"""Seconds that a CPU device waits for the others."""
WAITING = (
    "xla_cpu_collective_call_terminate_timeout_seconds",
    "xla_cpu_collective_call_warn_stuck_timeout_seconds",
)
BY_FLAG = "xla_force_host_platform_device_count"
ENVIRONMENT = "TEMPERNET_DEVICES"
ADVICE = "call tempernet.configure() before anything else uses JAX"


class _Said:
    """Whether this process has been warned."""

    warned = False


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def configure(devices: int | None = None) -> None:
    """Set JAX up: a CPU device a core, at most 8, which wait for each other as long as it takes.

    Call it before anything uses JAX. Where JAX has started already, its devices stay as they are,
    and one warning says what that costs.

    Args:
        devices: number of CPU devices, 1 to 8. By default it is what `TEMPERNET_DEVICES` in the
            environment says, else what JAX has been told already, else one a core.

    >>> import tempernet as tn
    >>> tn.configure(devices=4)
    """
    wanted = _asked_for(devices)
    # On some processors XLA takes programs that it has kept itself for those of another machine,
    # and says so in pages of text. It listens to this only before JAX is imported; what really
    # fails is an exception all the same.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import jax

    if wanted is None and _told_by_user():
        wanted = _told_to_jax()
    elif wanted is None:
        wanted = min(cores(), MAX_DEVICES)
    if _has_started():
        _warn_if_late(wanted)
        return
    _wait_for_late_devices()
    if wanted is not None:
        jax.config.update("jax_num_cpu_devices", wanted)


def warn_if_not_configured(in_use: int, *, is_asked: bool = False) -> None:
    """Warn once in a process if nobody has set JAX's CPU devices up and that costs something.

    Args:
        in_use: devices that are about to be used.
        is_asked: whether the user asked for just so many.
    """
    import jax

    if jax.default_backend() != "cpu":
        return
    if jax.local_device_count() == 1 and cores() > 1 and not (is_asked or _told_by_user()):
        _warn(f"sampling on 1 of {cores()} cores: {ADVICE}")
    elif in_use > 1 and not _will_wait():
        _warn(
            f"the {in_use} devices wait at most 40 s for each other before XLA ends the process, "
            f"as may happen on a busy machine: {ADVICE}"
        )


def _asked_for(devices: int | None) -> int | None:
    """The number of devices that the argument or the environment asks for."""
    if devices is not None:
        check_count("devices", devices)
        if devices > MAX_DEVICES:
            raise ConfigError(
                f"devices must be a whole number from 1 to {MAX_DEVICES}, got {devices}"
            )
        return devices
    asked = os.environ.get(ENVIRONMENT, "")
    if asked and not (asked.isdigit() and 1 <= int(asked) <= MAX_DEVICES):
        raise ConfigError(
            f"{ENVIRONMENT} must be a whole number from 1 to {MAX_DEVICES}, got {asked!r}"
        )
    return int(asked) if asked else None


def _told_to_jax() -> int | None:
    """The number of CPU devices that JAX's own setting says, if it says one."""
    import jax

    chosen: int = jax.config.jax_num_cpu_devices  # type: ignore[attr-defined]
    return chosen if chosen >= 0 else None


def _told_by_user() -> bool:
    """Whether JAX has been told how many CPU devices to start, in whichever way."""
    return _told_to_jax() is not None or BY_FLAG in os.environ.get("XLA_FLAGS", "")


def _has_started() -> bool:
    """Whether JAX has started its devices."""
    import jax

    # It then refuses another number of them, which is the public way to know.
    before: int = jax.config.jax_num_cpu_devices  # type: ignore[attr-defined]
    try:
        jax.config.update("jax_num_cpu_devices", before + 1)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", before)
    return False


def _wait_for_late_devices() -> None:
    """Let CPU devices wait for each other, unless the user has said how long.

    XLA ends the process if a device waits 40 s for another one at a collective. On a busy machine
    the devices come to the end of a long round further apart than that, and they do come. XLA reads
    its flags when JAX starts.
    """
    given = os.environ.get("XLA_FLAGS", "")
    missing = [f"--{flag}={PATIENCE}" for flag in WAITING if flag not in given]
    os.environ["XLA_FLAGS"] = " ".join([given, *missing]).strip()


def _will_wait() -> bool:
    """Whether XLA was told how long its devices wait."""
    return WAITING[0] in os.environ.get("XLA_FLAGS", "")


def _warn_if_late(wanted: int | None) -> None:
    """JAX had started before `configure`: say what that costs, if it costs anything."""
    import jax

    if jax.default_backend() != "cpu":
        return
    started = jax.local_device_count()
    if wanted is not None and started != wanted:
        _warn(f"JAX had started with {started} of {wanted} devices, which stays so: {ADVICE}")
    elif started > 1 and not _will_wait():
        warn_if_not_configured(started)


def _warn(text: str) -> None:
    if not _Said.warned:
        _Said.warned = True
        warnings.warn(text, DevicesWarning, stacklevel=3)
