"""The commands that run: one for each kind, made from its entry in the list, and `resume`."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tempernet import config
from tempernet.cli.options import (
    DataOption,
    JsonOption,
    MaxTimeOption,
    NetworkOption,
    OutOption,
    PresetOption,
    ProtocolOption,
    QuietOption,
    RunDir,
    SetOption,
    SettingsFile,
    resolved,
)
from tempernet.errors import ConfigError
from tempernet.kinds import AnyKind, Option, kind_of


def command_of(kind: AnyKind) -> Callable[..., None]:
    """The command of a kind: the options of all, and its own."""

    def command(**given: Any) -> None:
        own = {option.name: given.pop(option.name) for option in kind.options}
        _run(kind, own, **given)

    common = inspect.signature(_run, eval_str=True).parameters
    parameters = [common[name] for name in common if name not in ("kind", "options")]
    parameters += [_parameter(option) for option in kind.options]
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    # What typer reads: the names, types and helps of the options.
    setattr(command, "__signature__", inspect.Signature(keyword))  # noqa: B010
    command.__annotations__ = {each.name: each.annotation for each in keyword}
    return command


def _parameter(option: Option) -> inspect.Parameter:
    annotation: object = Annotated[option.type | None, typer.Option(help=option.help)]
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _run(
    kind: AnyKind,
    options: Mapping[str, object],
    settings_file: SettingsFile = None,
    preset: PresetOption = None,
    out: OutOption = None,
    assignments: SetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    network: NetworkOption = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Begin a run, or continue the one that is in the folder."""
    from tempernet.runs.run import run

    settings = resolved(
        kind,
        settings_file=settings_file,
        preset=preset,
        protocol=protocol,
        assignments=assignments,
        data=data,
        network=network,
        options=options,
    )
    path = out or _new_folder(f"{kind.name}-{settings.network.name}")
    run(kind, settings, path, max_time=max_time, quiet=quiet, as_json=as_json)


def resume(
    run: RunDir,
    rounds: Annotated[int | None, typer.Option(help="Total number of rounds that count.")] = None,
    burn_in: Annotated[
        int | None,
        typer.Option(help="Total number of rounds of burn-in; early samples become burn-in."),
    ] = None,
    max_time: MaxTimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Continue a run, or make it longer."""
    from tempernet.paper.running import run_study
    from tempernet.paper.study import is_study
    from tempernet.runs import run as runs
    from tempernet.store import RunFolder

    lengths = {"rounds": rounds, "burn_in": burn_in}
    longer = {name: value for name, value in lengths.items() if value is not None}
    if is_study(run):
        if longer:
            raise ConfigError(
                f"{run} is a study: make one of the runs in {run / 'runs'} longer, "
                f"then resume {run}"
            )
        run_study(run, max_time=max_time, quiet=quiet, as_json=as_json)
        return
    kind = kind_of(run)
    settings = RunFolder.open(run).settings(kind.settings)
    if longer:
        given = settings.model_dump()
        settings = config.settings_from({**given, "run": given["run"] | longer}, kind.settings)
    runs.run(kind, settings, run, max_time=max_time, quiet=quiet, as_json=as_json)


def _new_folder(name: str) -> Path:
    """A folder named by the time, for a run that was given none."""
    return Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
