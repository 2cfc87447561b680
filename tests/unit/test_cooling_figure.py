"""The cooling curve: what is drawn where, and what the small print says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from tempernet import config
from tempernet.annealing.stopping import follow, least
from tempernet.diagnostics.statistics import average
from tempernet.report import figures
from tempernet.report.anneal import document, statements
from tempernet.results.anneal import AnnealResults

TEMPERATURES = np.geomspace(10, 0.1, 9)


def cooled(validation: np.ndarray, patience: int = 2) -> AnnealResults:
    """A cooling with these mean validation losses, four replicas of five draws each."""
    noise = 0.02 * np.random.default_rng(0).normal(size=(len(validation), 4, 5))
    losses = validation[:, None, None] + noise
    course = follow(losses, patience)
    series = np.moveaxis(losses, 0, -1)
    return AnnealResults(
        path=Path("run"),
        settings=config.AnnealSettings(),
        provenance={
            "data": {"name": "mnist16", "n_train": 500, "n_test": 100},
            "uninformed_loss": np.log(10),
        },
        temperatures=TEMPERATURES[: len(validation)],
        time_steps=np.full(len(validation), 0.01),
        acceptance=np.full(len(validation), 0.65),
        train_loss=average(0.5 * series),
        validation_loss=average(series),
        validation_accuracy=average(1 - 0.1 * series),
        losses=losses,
        course=course,
        test={},
    )


RISING = cooled(np.array([3.0, 2.5, 2.0, 1.5, 1.8, 2.4, 3.0]))
FALLING = cooled(np.linspace(3, 1, 9))
TEST: dict[str, np.ndarray] = {
    **{f"chosen_{name}": np.asarray(1.25) for name in ("loss", "accuracy")},
    **{f"ensemble_{name}": np.asarray(0.75) for name in ("loss", "accuracy", "calibration")},
    **{f"member_{name}": np.full((4, 5), 1.5) for name in ("loss", "accuracy")},
    **{f"optimised_{name}": np.array([4.0, 5.0, 6.0]) for name in ("loss", "accuracy")},
    "optimised_reached": np.array([True, False, True]),
}


def marker(figure: Figure, kind: str) -> tuple[float, float]:
    (line,) = [
        line for axes in figure.subfigs[0].axes for line in axes.lines if line.get_marker() == kind
    ]
    return float(np.asarray(line.get_xdata())[0]), float(np.asarray(line.get_ydata())[0])


def words(figure: Figure) -> str:
    legends = [
        text.get_text() for legend in figure.subfigs[0].legends for text in legend.get_texts()
    ]
    return " ".join(" ".join([*legends, figure.get_supxlabel()]).split())


def test_star_diamond_and_stop_are_where_they_should_be() -> None:
    assert RISING.course.stopped and RISING.best == 3
    figure = figures.cooling_figure(RISING)
    assert marker(figure, "*") == pytest.approx((TEMPERATURES[3], RISING.validation_loss.mean[3]))
    step, replica, draw = least(RISING.losses)
    assert marker(figure, "D") == pytest.approx(
        (TEMPERATURES[step], RISING.losses[step, replica, draw])
    )
    (axes,) = figure.subfigs[0].axes
    stops = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert [float(np.asarray(line.get_xdata())[0]) for line in stops] == pytest.approx(
        [RISING.temperatures[-1]]
    )
    low, high = sorted(axes.get_ylim())
    assert low < 0.5 * 1.5 and high > 3.0
    assert axes.get_xlim()[0] > axes.get_xlim()[1]


def test_a_cooling_that_did_not_stop_has_no_line_for_it() -> None:
    figure = figures.cooling_figure(FALLING)
    assert not [line for line in figure.subfigs[0].axes[0].lines if line.get_linestyle() == ":"]
    assert "stopped" not in words(figure) and "so far" in words(figure)
    assert "default protocol" in words(figure)


def test_test_scores_are_told_once_there_are_any() -> None:
    assert "Test loss" not in words(figures.cooling_figure(RISING))
    said = words(figures.cooling_figure(replace(RISING, test=TEST)))
    assert (
        "single network 1.25; ensemble of 20 at the star 0.75; mean of 3 optimised networks 5.0(6)"
        in said
    )


def test_the_same_is_told_in_words_and_in_json() -> None:
    finished = replace(RISING, test=TEST)
    lines = statements(finished)
    assert (
        next(line for line in lines if "<- lowest" in line).split()[0] == f"{TEMPERATURES[3]:.4g}"
    )
    assert any("3 optimised networks, 2 of them with E = 0: loss 5.0(6)" in line for line in lines)
    said: Any = document(finished)
    assert (
        said["best_temperature"] == TEMPERATURES[3]
        and said["last_temperature"] == RISING.temperatures[-1]
    )
    assert said["test"]["optimised"]["loss"] == 5 and said["test"]["optimised"][
        "loss_error"
    ] == pytest.approx(3**-0.5)
    assert said["chosen"]["validation_loss"] == RISING.losses.min()
    assert "not finished" in statements(RISING)[-1] and document(RISING)["test"] == {}
