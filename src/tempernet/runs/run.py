"""A task or a study in its folder: begun or gone on with, run to its end, its results written and
shown.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tempernet import config
from tempernet.errors import ConfigError, NumericsError, Stopped, StoreError, TempernetError
from tempernet.runs.stopping import Stopper, seconds

Finished = tuple[dict[str, Any], Callable[[], None]]
"""What `--json` prints, and what shows it."""


def run_task(settings: Any, path: Path, max_time: str | None, quiet: bool, as_json: bool) -> None:
    """Run a task in its folder, from where the folder is to the end, and write and show what came
    out.
    """
    max_seconds = None if max_time is None else seconds(max_time)
    advice = f"; go on with: tempernet resume {path}"
    settings, problem, folder = _prepared(settings, path)
    try:
        with Stopper(max_seconds, advice) as stopping:
            document, show = _carried_out(settings, problem, folder, stopping, quiet)
    except Stopped as error:
        raise Stopped(f"{error}{advice}") from error
    finally:
        folder.unlock()
    _tell(document, show, quiet, as_json)


def run_study(
    path: Path,
    scale: str | None,
    only: list[str] | None,
    max_time: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the steps of a study that are not finished, and write its page."""
    from tempernet.paper.programs import compiling
    from tempernet.paper.study import Study
    from tempernet.store import RunFolder

    max_seconds = None if max_time is None else seconds(max_time)
    advice = f"; go on with: tempernet reproduce --out {path}"
    Study.begin(path, scale, only)
    make_folder(path)
    folder = RunFolder(path)
    folder.lock()
    try:
        study = Study.begin(path, scale, only)
        study.write()
        with compiling(path, tiny=study.scale == "smoke"), Stopper(max_seconds, advice) as stopping:
            failed = _steps(study, stopping, quiet)
            document, show = _finish_study(study, failed)
    except Stopped as error:
        raise Stopped(f"{error}{advice}") from error
    finally:
        folder.unlock()
    _tell(document, show, quiet, as_json)
    if failed:
        raise NumericsError(
            f"{len(failed)} steps failed, and the page calls their claims undecided: {', '.join(failed)}"
        )


def _prepared(settings: Any, path: Path) -> tuple[Any, Any, Any]:
    """The settings as the folder has them, what they sample, and the folder with its lock."""
    from tempernet.tasks.problem import make_problem

    settings = _settings_for(path, settings)
    problem = make_problem(settings)
    if settings.task == "anneal":
        from tempernet.tasks.anneal import check_comparable

        check_comparable(settings, problem)
    folder = _folder(path)
    # Once more with the lock: another process may have begun a run here in the meantime.
    return _settings_for(path, settings), problem, folder


def _settings_for(path: Path, settings: Any) -> Any:
    """The settings with their seed; those of a run that is there already must be the same but for
    what may change.
    """
    from tempernet.store import RunFolder
    from tempernet.store.folder import is_run, must_be_empty

    if not is_run(path):
        must_be_empty(path)
        return seeded(settings)
    old = RunFolder.open(path).settings
    if settings.run.seed < 0:
        settings = settings.model_copy(
            update={"run": settings.run.model_copy(update={"seed": old.run.seed})}
        )
    may_change = ("run.rounds:", "run.burn_in:", "output.")
    changed = [
        line for line in config.differences(old, settings) if not line.startswith(may_change)
    ]
    if changed:
        raise StoreError(
            f"{path} holds a run with other settings ({'; '.join(changed)}); choose another folder with --out, or "
            f"go on with its own settings: tempernet resume {path}"
        )
    return settings


def seeded(settings: Any) -> Any:
    """With a seed drawn if none is given."""
    if settings.run.seed >= 0:
        return settings
    return settings.model_copy(
        update={"run": settings.run.model_copy(update={"seed": secrets.randbelow(2**31)})}
    )


def _folder(path: Path) -> Any:
    """The run folder, new or there already, with its lock."""
    from tempernet.store import RunFolder
    from tempernet.store.folder import is_run

    if not is_run(path):
        return RunFolder.create(path)
    folder = RunFolder.open(path)
    folder.lock()
    return folder


def _carried_out(
    settings: Any, problem: Any, folder: Any, stopping: Stopper, quiet: bool
) -> Finished:
    """Run a task to its end and write its results."""
    from tempernet.report.terminal import reporter
    from tempernet.tasks.base import Watch

    shown = reporter(quiet)
    try:
        if not quiet:
            print(
                f"tempernet: protocol {settings.protocol}, run folder {folder.path}",
                file=sys.stderr,
            )
        _task_class(settings.task)(settings, problem, folder, Watch(shown, stopping, _warn)).run()
    finally:
        shown.close()
    return _FINISH[settings.task](folder.path)


def _tell(document: dict[str, Any], show: Callable[[], None], quiet: bool, as_json: bool) -> None:
    from tempernet.store import files

    if as_json:
        print(json.dumps(files.plain(document)))
    elif not quiet:
        show()


def _warn(text: str) -> None:
    print(f"tempernet: warning: {text}", file=sys.stderr, flush=True)


def _steps(study: Any, stopping: Stopper, quiet: bool) -> dict[str, str]:
    """Run what is wanted and not finished; what went wrong with those that could not go on."""
    failed: dict[str, str] = {}
    for number, step in enumerate(study.wanted, 1):
        if stopping():
            raise Stopped("stopped as asked")
        if study.finished(step):
            continue
        if not quiet:
            print(
                f"tempernet: step {number} of {len(study.wanted)}: {step.name}",
                file=sys.stderr,
                flush=True,
            )
        settings, problem, folder = _prepared(study.settings(step), study.folder(step))
        try:
            _carried_out(settings, problem, folder, stopping, quiet)
        except (NumericsError, ConfigError) as error:
            # The settings are the study's own: a start outside the prior's box is no mistake of the
            # user.
            _warn(f"{step.name} failed, the others go on: {error}")
            failed[step.name] = str(error)
        finally:
            folder.unlock()
    return failed


def _finish_study(study: Any, failed: dict[str, str]) -> Finished:
    """Write the page; what `--json` prints, and what shows it."""
    from tempernet.paper.claims import judge_all
    from tempernet.paper import sentences
    from tempernet.paper.page import write_page
    from tempernet.paper.steps import IMAGES_OF
    from tempernet.report.terminal import show_lines

    runs = study.results()
    images = images_of(runs[IMAGES_OF]) if IMAGES_OF in runs else None
    states = [(step.name, failed.get(step.name, "not made")) for step in study.steps]
    claims = judge_all(runs)
    written = write_page(study.path, study.scale, runs, claims, states, images)
    lines = [f"{len(runs)} of {len(study.steps)} runs at the scale {study.scale}"]
    lines.append(sentences.counted(claims))
    lines += [f"{claim.verdict:13s}  {sentences.name(claim.statement)}" for claim in claims]
    document = {
        "scale": study.scale,
        "claims": [sentences.document(claim) for claim in claims],
        "failed": failed,
    }
    return document, lambda: show_lines(lines, written)


def _task_class(task: str) -> Any:
    """The class that runs a task; imported only when it is needed."""
    from tempernet.tasks.anneal import Anneal
    from tempernet.tasks.evidence import evidence_task
    from tempernet.tasks.optimise import Optimise
    from tempernet.tasks.sweep import Sweep

    return {"sweep": Sweep, "evidence": evidence_task, "anneal": Anneal, "optimise": Optimise}[task]


def _finish_sweep(path: Path) -> Finished:
    from tempernet.report import figures
    from tempernet.report.sweep import document, show
    from tempernet.results import sweep as results
    from tempernet.store.folder import FIGURES

    found = results.load(path)
    written = _write(
        found,
        document(found),
        lambda: figures.draw(figures.sweep_figures(found, images_of(found)), path / FIGURES),
        lambda: results.write_netcdf(found),
    )
    return document(found), lambda: show(found, written)


def _finish_evidence(path: Path) -> Finished:
    from tempernet.report import figures
    from tempernet.report.evidence import document, show_evidence
    from tempernet.results import evidence as evidence_results
    from tempernet.store.folder import FIGURES

    found = evidence_results.load(path)
    said = document(found)
    written = _write(
        found,
        said,
        lambda: figures.draw(figures.evidence_figures(found), path / FIGURES),
    )
    return said, lambda: show_evidence(found, written)


def _finish_anneal(path: Path) -> Finished:
    from tempernet.report import figures
    from tempernet.report.anneal import document, statements
    from tempernet.report.terminal import show_lines
    from tempernet.results import anneal as annealed
    from tempernet.store.folder import FIGURES

    found = annealed.load(path)
    said = document(found)
    written = _write(
        found, said, lambda: figures.draw(figures.anneal_figures(found), path / FIGURES)
    )
    return said, lambda: show_lines(statements(found), written)


def _finish_optimise(path: Path) -> Finished:
    from tempernet.report.optimise import document, statements
    from tempernet.report.terminal import show_lines
    from tempernet.results import optimise as optimised

    found = optimised.load(path)
    written = _write(found, document(found), list)
    return document(found), lambda: show_lines(statements(found), written)


def _write(
    found: Any,
    document: dict[str, Any],
    draw_fn: Callable[[], list[Path]],
    write_fn: Callable[[], list[Path]] = list,
) -> list[Path]:
    """Write results.json, what `write_fn` writes, and figures unless they are not wanted; what to
    tell of them.
    """
    from tempernet.store import outcome
    from tempernet.store.folder import FIGURES

    figures = draw_fn if found.settings.output.figures else list
    written = outcome.write(found.path, document, lambda: [*write_fn(), *figures()])
    # Figures are named by their folder.
    return list(
        dict.fromkeys(file.parent if file.parent.name == FIGURES else file for file in written)
    )


_FINISH: dict[str, Callable[[Path], Finished]] = {
    "sweep": _finish_sweep,
    "evidence": _finish_evidence,
    "anneal": _finish_anneal,
    "optimise": _finish_optimise,
}
"""Task -> write the results of a finished run; what `--json` prints, and what shows them."""


def images_of(found: Any) -> Any:
    """Stored training images and labels for Fig. 1; None if the data are not images or not there
    any more.
    """
    from tempernet.tasks.problem import load_data

    try:
        train = load_data(found.settings).train
    except TempernetError:
        return None
    return (train.x, train.y) if train.x.ndim == 3 else None


def make_folder(folder: Path) -> None:
    """Make a folder, or say why it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the folder {folder}: {error.strerror}; choose another with --out"
        ) from error
