"""The study carried out: its steps run one after the other, and its page written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tempernet.errors import ConfigError, NumericsError, Stopped
from tempernet.kinds import KINDS
from tempernet.kinds.sweep import images_of
from tempernet.paper import sentences
from tempernet.paper.claims import judge_all
from tempernet.paper.page import write_page
from tempernet.paper.programs import compiling
from tempernet.paper.steps import IMAGES_OF
from tempernet.paper.study import Study
from tempernet.report.terminal import show_lines
from tempernet.runs.run import Finished, begin, carry_out, make_folder, warn
from tempernet.runs.stopping import Stopper, seconds
from tempernet.store import RunFolder
from tempernet.tasks.problem import data_still_there


def run_study(
    path: Path,
    scale: str | None = None,
    only: Sequence[str] | None = None,
    *,
    max_time: str | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Run the steps of a study that are not finished, and write its page.

    `scale` and `only` may be None for a study that has begun: they are as they were.
    """
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
            failed = _run_steps(study, stopping, quiet)
            finished = _write(study, failed)
    except Stopped as error:
        raise Stopped(f"{error}{advice}") from error
    finally:
        folder.unlock()
    finished.tell(quiet=quiet, as_json=as_json)
    if failed:
        raise NumericsError(
            f"{len(failed)} steps failed, and the page calls their claims undecided: "
            f"{', '.join(failed)}"
        )


def _run_steps(study: Study, stop_fn: Callable[[], bool], quiet: bool) -> dict[str, str]:
    """Run what is wanted and not finished; what went wrong with steps that could not go on."""
    failed: dict[str, str] = {}
    for number, step in enumerate(study.wanted, 1):
        if stop_fn():
            raise Stopped("stopped as asked")
        if study.finished(step):
            continue
        if not quiet:
            print(
                f"tempernet: step {number} of {len(study.wanted)}: {step.name}",
                file=sys.stderr,
                flush=True,
            )
        settings = study.settings(step)
        kind = KINDS[settings.kind]
        begun = begin(kind, settings, study.folder(step))
        try:
            carry_out(kind, begun, stop_fn, quiet)
        except (NumericsError, ConfigError) as error:
            # The settings are the study's own: a start outside the prior's box is no mistake of
            # the user.
            warn(f"{step.name} failed, the others go on: {error}")
            failed[step.name] = str(error)
        finally:
            begun.folder.unlock()
    return failed


def _write(study: Study, failed: Mapping[str, str]) -> Finished:
    """Write the page of what there is."""
    runs = study.results()
    images = None
    if IMAGES_OF in runs:
        images = images_of(data_still_there(runs[IMAGES_OF].settings))
    states = [(step.name, failed.get(step.name, "not made")) for step in study.steps]
    claims = judge_all(runs)
    written = write_page(study.path, study.scale, runs, claims, states, images)
    lines = [
        f"{len(runs)} of {len(study.steps)} runs at the scale {study.scale}",
        sentences.counted(claims),
    ]
    lines += [f"{claim.verdict:13s}  {sentences.name(claim.statement)}" for claim in claims]
    document = {
        "scale": study.scale,
        "claims": [sentences.document(claim) for claim in claims],
        "failed": failed,
    }
    return Finished(document, lambda: show_lines(lines, written))
