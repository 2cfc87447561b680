"""Figures show the numbers of the summary, warn where they must, and draw the oddest ladder."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from made_up import LAYERS, make_evidence, make_results
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image

from tempernet import config
from tempernet.errors import DataError, StoreError
from tempernet.report import figures
from tempernet.report.figures import notes
from tempernet.report.figures.axis import HOLLOW, fit_y, log_ticks, number, temperature_scale
from tempernet.report.figures.files import DPI
from tempernet.report.figures.trajectory import energies_per_example
from tempernet.results.comparison import compare
from tempernet.results.optimise import SCORED, OptimiseResults
from tempernet.results.sweep import SweepResults

NAMES = (
    "fig2-trajectory",
    "fig3-loss",
    "steps",
    "swaps",
    "flow",
    "heat-capacity",
    "ensemble",
    "mean-square",
)
LADDER = np.geomspace(0.1, 10, 7)
CASES: dict[str, Callable[[], SweepResults]] = {
    "normal": lambda: make_results(LADDER),
    "one copy": lambda: make_results(LADDER, copies=1),
    "one rung": lambda: make_results(np.array([1.0])),
    "two rungs": lambda: make_results(np.array([0.5, 2.0])),
    "prior included": lambda: make_results(np.array([0.1, 1.0, 10.0, np.inf])),
    "prior alone": lambda: make_results(np.array([np.inf])),
    "narrow": lambda: make_results(np.array([1.0, 1.05, 1.1])),
    "no scores": lambda: make_results(LADDER, scored=False),
    "not equilibrated": lambda: make_results(LADDER, stuck=(0, 1)),
    "no burn-in": lambda: make_results(LADDER, burn_in=0),
    "one round": lambda: make_results(LADDER, copies=1, rounds=1, burn_in=0),
    "many rungs": lambda: make_results(np.geomspace(0.01, 100, 112), copies=2),
    "wide": lambda: make_results(np.geomspace(1e-7, 1e6, 5), protocol="paper", prior="gaussian"),
}


@functools.cache
def case(name: str) -> SweepResults:
    return CASES[name]()


@pytest.fixture(scope="module")
def images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((80, 16, 16)).astype(np.float32), rng.integers(0, 10, 80)


def figures_of(run: SweepResults) -> list[Figure]:
    ensemble = figures.ensemble_figure(run)
    return [
        figures.trajectory_figure(run),
        figures.loss_figure([run]),
        figures.steps_figure(run),
        figures.swaps_figure(run),
        figures.flow_figure(run),
        figures.heat_capacity_figure(run),
        *([] if ensemble is None else [ensemble]),
        figures.mean_square_figure(run),
    ]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def words(figure: Figure) -> str:
    """All text of a figure, with its lines unbroken."""
    return " ".join(" ".join(texts(figure)).split())


def lines_with(figure: Figure, values: np.ndarray) -> list[Line2D]:
    return [
        line
        for axes in all_axes(figure)
        for line in axes.lines
        if np.array_equal(line.get_ydata(), values)
    ]


def all_axes(figure: Figure) -> list:
    return [axes for part in figure.subfigs for axes in part.axes]


def hollow(figure: Figure) -> list[Line2D]:
    """Markers of data that are drawn hollow."""
    return [
        line
        for axes in all_axes(figure)
        for line in axes.lines
        if line.get_marker() != "None" and to_rgba(line.get_markerfacecolor()) == to_rgba("white")
    ]


@pytest.mark.parametrize("name", ["normal", "no scores"])
def test_every_figure_is_written(
    name: str, tmp_path: Path, images: tuple[np.ndarray, np.ndarray]
) -> None:
    run = case(name)
    written = figures.draw(figures.sweep_figures(run, images), tmp_path / "figures")
    names = [
        "fig1-images",
        *(one for one in NAMES if one != "ensemble" or "ensemble_loss" in run.summary),
    ]
    assert written == [
        tmp_path / "figures" / f"{one}.{kind}" for one in names for kind in ("svg", "png")
    ]
    assert sorted(written) == sorted((tmp_path / "figures").iterdir())
    for file in written:
        if file.suffix == ".png":
            with Image.open(file) as image:
                image.load()
                assert min(image.size) > 2 * DPI
        else:
            assert file.read_text().rstrip().endswith("</svg>")


@pytest.mark.parametrize("name", CASES)
def test_no_run_is_too_odd_to_draw_and_nothing_is_cut_off_or_covered(name: str) -> None:
    for figure in figures_of(case(name)):
        figure.draw_without_rendering()
        panel = figure.subfigs[0].get_tightbbox()
        words = [getattr(figure, name) for name in ("_suptitle", "_supxlabel")]
        heading, small_print = (text.get_window_extent() for text in words)
        assert (
            min(axes.bbox.width for axes in all_axes(figure) if axes.get_label() != "<colorbar>")
            > 0.3 * figure.bbox.width
        )
        for box in (panel, heading, small_print):
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.x1
        assert 0 <= small_print.y0 < small_print.y1 <= panel.y0
        assert panel.y1 <= heading.y0 < heading.y1 <= figure.bbox.y1


@pytest.mark.parametrize(
    "draw", [figures.trajectory_figure, figures.swaps_figure, figures.heat_capacity_figure]
)
def test_bytes_are_the_same_every_time_whatever_the_users_settings(
    draw: Callable[[SweepResults], Figure], tmp_path: Path
) -> None:
    first = figures.save(draw(case("normal")), tmp_path / "first")
    with matplotlib.rc_context(
        {"font.size": 20, "axes.facecolor": "red", "svg.hashsalt": "another"}
    ):
        second = figures.save(draw(case("normal")), tmp_path / "second")
        assert matplotlib.rcParams["font.size"] == 20
    assert [file.suffix for file in first] == [".svg", ".png"]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


@pytest.mark.parametrize(
    "draw", [figures.loss_figure, figures.heat_capacity_figure, figures.mean_square_figure]
)
def test_hollow_markers_and_their_legend_only_where_a_rung_has_not_equilibrated(
    draw: Callable[..., Figure],
) -> None:
    def figure(run: SweepResults) -> Figure:
        return draw([run]) if draw is figures.loss_figure else draw(run)

    good, bad = case("normal"), case("not equilibrated")
    assert good.verdict.good
    assert bad.verdict.equilibrated.tolist() == [False, False, True, True, True, True, True]
    assert not hollow(figure(good))
    assert HOLLOW not in texts(figure(good))
    found = hollow(figure(bad))
    assert found
    assert all(np.array_equal(line.get_xdata(), LADDER[:2]) for line in found)
    assert HOLLOW in texts(figure(bad))


def test_every_figure_says_what_it_shows_and_how_far_to_trust_it(
    images: tuple[np.ndarray, np.ndarray],
) -> None:
    run = case("not equilibrated")
    for figure in (figures.images_figure(*images, 0, run), *figures_of(run)):
        shown = words(figure)
        assert run.title in shown
        assert notes.verdict(run) in shown


def test_every_figure_names_the_protocol(images: tuple[np.ndarray, np.ndarray]) -> None:
    run = make_results(LADDER, protocol="paper")
    optimised = {"another": make_optimised(1.7, 0.0)}
    both = figures.loss_figure([run], optimised)
    for figure in (figures.images_figure(*images, 0, run), both, *figures_of(run)):
        assert "paper protocol" in words(figure)
    # Beside it stands an optimisation by the other protocol.
    assert "default protocol" in words(both)
    for protocol in ("default", "paper"):
        model = make_evidence("M3", 26_480.0, 10.0, log_volume=28_960.0, protocol=protocol)
        pair = [figures.integrand_figure(model), figures.comparison_figure(compare([model]))]
        assert all(f"{protocol} protocol" in words(figure) for figure in pair)


def test_an_unfinished_run_says_so() -> None:
    assert "not finished" not in " ".join(texts(figures.steps_figure(case("normal"))))
    unfinished = replace(case("normal"), finished=False)
    assert "not finished" in " ".join(" ".join(texts(figures.steps_figure(unfinished))).split())


def test_loss_curves_are_the_summary() -> None:
    run = case("normal")
    figure = figures.loss_figure([run])
    for name in ("train_loss", "test_loss"):
        mean, error = run.summary[name].values, run.summary[f"{name}_error"].values
        assert all(np.array_equal(line.get_xdata(), LADDER) for line in lines_with(figure, mean))
        axes = lines_with(figure, mean)[0].axes
        assert axes is not None
        band = np.asarray(axes.collections[0].get_paths()[0].vertices)
        for value in (*(mean - error), *(mean + error)):
            assert np.isclose(band[:, 1], value, rtol=1e-12).any()
        assert any(np.allclose(line.get_ydata(), np.log(10)) for line in axes.lines)
        low, high = axes.get_ylim()
        assert low < mean.min()
        assert high > mean.max()


def test_the_best_temperature_is_marked_with_its_interval() -> None:
    run = case("normal")
    assert run.best is not None
    axes = all_axes(figures.loss_figure([run]))[1]
    star = next(line for line in axes.lines if line.get_marker() == "*")
    assert star.get_xdata() == run.best.temperature
    assert star.get_ydata() == run.summary.test_loss.values[run.best.rung]
    assert any(
        np.array_equal(line.get_xdata(), [run.best.low, run.best.high]) for line in axes.lines
    )


def test_an_interval_need_not_hold_the_best_temperature() -> None:
    best = case("normal").best
    assert best is not None
    run = replace(case("normal"), best=best._replace(low=8.0, high=10.0))
    axes = all_axes(figures.loss_figure([run]))[1]
    assert any(np.array_equal(line.get_xdata(), [8.0, 10.0]) for line in axes.lines)


def test_dollars_in_names_are_no_formulas() -> None:
    run = case("normal")
    odd = replace(run, provenance=run.provenance | {"data": {"name": "a$^{$b", "n_train": 50}})
    figures.steps_figure(odd).draw_without_rendering()


def make_optimised(test_loss: float, train_loss: float) -> OptimiseResults:
    """Three optimised networks with these mean losses."""
    kept = {name: np.ones(3) for name in SCORED}
    losses = np.full(3, train_loss)
    kept |= {
        "test_loss": test_loss + np.array([-0.1, 0.0, 0.1]),
        "train_loss": losses,
        "energy": 500 * losses,
    }
    provenance = {"data": {"name": "mnist16", "n_train": 500}}
    return OptimiseResults(
        Path("optimised"), config.resolve(config.OptimiseSettings), provenance, {}, kept
    )


def test_a_best_temperature_that_has_not_equilibrated_is_a_hollow_star() -> None:
    best = case("normal").best
    assert best is not None
    run = make_results(LADDER, stuck=(best.rung,))
    assert "*" in [line.get_marker() for line in hollow(figures.loss_figure([run]))]
    assert "*" not in [
        line.get_marker() for line in hollow(figures.loss_figure([case("not equilibrated")]))
    ]


def test_runs_in_one_figure_differ_in_colour_line_and_marker() -> None:
    runs = [make_results(LADDER, n_train=n) for n in (50, 500, 5000)]
    labels = figures.run_labels(runs)
    assert labels == ["50 images", "500 images", "5000 images"]
    figure = figures.loss_figure(
        runs, {"500 images": make_optimised(1.7, 0.0), "another": make_optimised(2.5, 0.3)}
    )
    assert {*labels, "standard optimisation (not all at E = 0)"} <= set(texts(figure))
    curves = [lines_with(figure, run.summary.test_loss.values) for run in runs]
    assert len({found[0].get_color() for found in curves}) == 3
    assert len({str(found[0]._unscaled_dash_pattern) for found in curves}) == 3  # type: ignore[attr-defined]
    assert len({found[1].get_marker() for found in curves}) == 3
    levels = [
        float(line.get_ydata()[0])
        for line in all_axes(figure)[1].lines
        if line.get_linestyle() == ":"
    ]
    np.testing.assert_allclose(levels, [1.7, 2.5])
    # A training loss of 0 has no place on a logarithmic axis.
    levels = [
        float(line.get_ydata()[0])
        for line in all_axes(figure)[0].lines
        if line.get_linestyle() == ":"
    ]
    np.testing.assert_allclose(levels, [0.3])
    figure = figures.loss_figure(runs, {"500 images": make_optimised(1.7, 0.0)})
    assert "standard optimisation (training loss 0)" in texts(figure)
    for run in runs:
        assert run.title in " ".join(" ".join(texts(figure)).split())


def test_labels_tell_runs_apart() -> None:
    same = [make_results(LADDER, path=Path(name)) for name in ("a", "b")]
    assert figures.run_labels(same) == ["50 images, a", "50 images, b"]
    protocols = [make_results(LADDER, protocol=name) for name in ("default", "paper")]
    assert figures.run_labels(protocols) == [
        "50 images, default protocol",
        "50 images, paper protocol",
    ]


def test_a_run_without_scores_shows_its_training_loss_alone() -> None:
    run = case("no scores")
    figure = figures.loss_figure([run])
    assert len(all_axes(figure)) == 1
    assert lines_with(figure, run.summary.train_loss.values)
    assert figures.ensemble_figure(run) is None


def test_the_prior_rung_has_a_place_of_its_own() -> None:
    run = case("prior included")
    figure = figures.loss_figure([run])
    axes = all_axes(figure)[0]
    mean = run.summary.train_loss.values
    assert lines_with(figure, mean[:3]), "the line joins finite temperatures"
    marks = lines_with(figure, mean)
    assert marks
    x = np.asarray(marks[0].get_xdata())
    assert x[-1] > 10
    assert np.isfinite(x).all()
    assert "∞" in [label.get_text() for label in axes.get_xticklabels()]
    assert axes.get_xlim()[1] > x[-1]


def test_trajectory_shows_every_round_in_the_colour_of_its_temperature() -> None:
    run = case("normal")
    axes = all_axes(figures.trajectory_figure(run))[0]
    lines = next(found for found in axes.collections if found.get_array() is not None)
    # A ladder that moves once has two pieces a rung.
    pieces, temperatures = lines.get_paths(), lines.get_array()
    assert len(pieces) == len(temperatures) == 2 * len(LADDER)
    energies = energies_per_example(run, copy=0)
    assert energies.shape == (92, len(LADDER))
    for rung in range(len(LADDER)):
        # Two pieces a rung, the hottest rung first.
        during = np.asarray(pieces[2 * (len(LADDER) - 1 - rung) + 1].vertices)
        np.testing.assert_array_equal(during[:, 0], np.arange(-5, 81))
        np.testing.assert_array_equal(during[:, 1], energies[6:, rung])
    np.testing.assert_allclose(energies[12:], run.series.energy.values[0] / 50)
    np.testing.assert_array_equal(temperatures[1::2], LADDER[::-1])
    np.testing.assert_array_equal(temperatures[::2], np.minimum(1.3 * LADDER, 10)[::-1])


def test_a_long_trajectory_is_drawn_as_means_of_both_kinds_of_copies() -> None:
    run = make_results(LADDER, copies=3, rounds=400, burn_in=0)
    figure = figures.trajectory_figure(run)
    panels = [axes for axes in all_axes(figure) if axes.get_label() != "<colorbar>"]
    for copy, axes in enumerate(panels):
        (lines,) = (found for found in axes.collections if found.get_array() is not None)
        coldest = np.asarray(lines.get_paths()[-1].vertices)
        assert coldest.shape == (134, 2) and coldest[0, 0] == 2 and coldest[-1, 0] == 400
        energies = energies_per_example(run, copy)[:, 0]
        np.testing.assert_allclose(coldest[:-1, 1], energies[:399].reshape(133, 3).mean(axis=1))
    begun = {"copy 0 of 3, from minimised weights", "copy 1 of 3, from draws of the prior"}
    assert begun <= set(texts(figure)) and "energy per example E / n, means of 3 rounds" in texts(
        figure
    )


def test_energies_of_zero_leave_a_logarithmic_axis_at_its_foot() -> None:
    run = make_results(LADDER)
    run.series.energy.values[:, :, 0] = 0.0
    axes = all_axes(figures.trajectory_figure(run))[0]
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "log"
    assert 0 < low < high


def test_swaps_are_drawn_between_their_rungs_with_the_barrier() -> None:
    run = case("normal")
    figure = figures.swaps_figure(run)
    (line,) = lines_with(figure, run.summary.swap_rate.values[:-1])
    np.testing.assert_allclose(np.asarray(line.get_xdata()), np.sqrt(LADDER[:-1] * LADDER[1:]))
    assert lines_with(figure, run.summary.overlap.values[:-1])
    assert lines_with(figure, np.array([0.2, 0.2]))
    wanted = f"about {run.barrier.rungs_wanted} temperatures recommended, 7 used"
    assert f"barrier Λ = {run.barrier.total:.1f}: {wanted}" in texts(figure)


def test_steps_are_the_summary() -> None:
    run = case("normal")
    figure = figures.steps_figure(run)
    for name in ("time_step", "acceptance", "wall_rejection_rate"):
        assert lines_with(figure, run.summary[name].values)


def test_paths_of_replicas_lead_back_to_who_sat_where() -> None:
    run = case("normal")
    left, right = all_axes(figures.flow_figure(run))
    assert any(np.array_equal(line.get_ydata(), run.fraction_from_hot) for line in left.lines)
    replica = run.series.replica.values[0]
    assert [int(line.get_ydata()[0]) for line in right.lines] == [0, 2, 4, 6]
    for line in right.lines:
        path = np.asarray(line.get_ydata())
        assert len(np.unique(replica[np.arange(len(path)), path])) == 1, "one replica all along"


def test_heat_capacity_and_histograms_of_its_peak() -> None:
    run = case("normal")
    figure = figures.heat_capacity_figure(run)
    assert lines_with(figure, run.summary.heat_capacity.values)
    right = all_axes(figure)[1]
    peak = int(run.summary.heat_capacity.values.argmax())
    outlined = [patch for patch in right.patches if not patch.get_fill()]
    assert len(outlined) == len(range(max(0, peak - 2), min(len(LADDER), peak + 3)))
    for patch in outlined:
        assert patch.get_data().values.sum() == pytest.approx(1.0)
    assert sum(text.startswith(("peak: ", "largest: ")) for text in texts(figure)) == 1


@pytest.mark.parametrize(("prior", "level"), [("box", 1 / 3), ("gaussian", 1.0)])
def test_mean_squares_are_shown_with_the_priors_own(prior: str, level: float) -> None:
    run = make_results(LADDER, prior=prior)
    figure = figures.mean_square_figure(run)
    for layer in range(LAYERS):
        assert lines_with(figure, run.summary.mean_square.values[:, layer])
    assert lines_with(figure, np.array([level, level]))


def test_ensemble_against_single_samples() -> None:
    run = case("normal")
    figure = figures.ensemble_figure(run)
    assert figure is not None
    for name in ("test_loss", "ensemble_loss", "ensemble_accuracy", "ensemble_calibration"):
        assert lines_with(figure, run.summary[name].values)


def test_images_are_drawn_once_each(images: tuple[np.ndarray, np.ndarray]) -> None:
    pixels, labels = images
    axes = all_axes(figures.images_figure(pixels, labels, 3))[0]
    mosaic = np.asarray(axes.images[0].get_array().filled(np.nan))
    chosen = np.random.default_rng(3).permutation(80)[:64]
    np.testing.assert_allclose(mosaic[:16, :16], pixels[chosen[0]])
    np.testing.assert_allclose(mosaic[-16:, -16:], pixels[chosen[-1]])
    assert [text.get_text() for text in axes.texts] == [str(label) for label in labels[chosen]]
    few = figures.images_figure(pixels[:5], labels[:5], 3)
    assert "The 5 training images" in texts(few)


def test_what_is_no_image_is_refused(images: tuple[np.ndarray, np.ndarray]) -> None:
    pixels, labels = images
    with pytest.raises(DataError, match=r"must be \(n, h, w\) with n labels, got \(80, 256\)"):
        figures.images_figure(pixels.reshape(80, -1), labels, 0)
    with pytest.raises(DataError):
        figures.images_figure(pixels, labels[:3], 0)


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot make the folder"):
        figures.save(Figure(), tmp_path / "file" / "figure")


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.008, 120, [0.01, 0.1, 1, 10, 100]),
        (0.45, 22, [0.5, 1, 2, 5, 10, 20]),
        (1.0, 3.0, [1, 2, 3]),
        (0.99, 1.11, [1.0, 1.05, 1.1]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("values", "scale"),
    [([0.5, 20.0], "log"), ([1.0, 2.0], "linear"), ([np.nan], "linear"), ([0.0, 0.0], "linear")],
)
def test_an_axis_is_logarithmic_if_its_values_span_much(values: list[float], scale: str) -> None:
    axes = Figure().subplots()
    fit_y(axes, [np.array(values)])
    assert axes.get_yscale() == scale


def test_a_scale_leaves_finite_temperatures_where_they_are() -> None:
    scale = temperature_scale(np.array([0.1, 10.0]), np.array([1.0, np.inf]))
    assert (scale.low, scale.high, scale.has_infinity) == (0.1, 10.0, True)
    np.testing.assert_array_equal(
        scale.place(np.array([0.1, 10.0, np.inf])), [0.1, 10.0, scale.infinity]
    )
    assert scale.infinity > 10


def test_a_scale_of_the_prior_alone_has_no_numbers() -> None:
    axes = Figure().subplots()
    scale = temperature_scale(np.array([np.inf]))
    scale.apply(axes)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["∞"]
    assert scale.mark_posterior(axes) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.164, "0.164"), (1.0, "1"), (12345.6, "12346"), (np.inf, "∞"), (1e-7, "$10^{-7}$")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text
