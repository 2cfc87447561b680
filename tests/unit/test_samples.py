"""What `tempernet.sample` and `tempernet.log_evidence` return: the results of a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tempernet as tn
from tempernet.data import Examples
from tempernet.results.evidence import EvidenceResults
from tempernet.results.sweep import SweepResults

pytestmark = pytest.mark.usefixtures("quick_programs")

NETWORK = tn.MLP((3, 4, 2))
TEMPERATURES = (0.5, 1.0, 4.0)
COPIES, ROUNDS = 2, 40


def examples(number: int, seed: int) -> Examples:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(number, 3)).astype(np.float32)
    return Examples(x, (x[:, 0] > 0).astype(np.int32))


TRAIN, VALIDATION, TEST = examples(12, 0), examples(20, 1), examples(30, 2)
TARGET = tn.Target.classifier(NETWORK, TRAIN, tn.UniformBox.for_network(NETWORK, 20.0))
SHORT: dict[str, Any] = {
    "dynamics": tn.Dynamics(num_steps=5, num_trajectories=1),
    "burn_in": 16,
    "rounds": ROUNDS,
    "copies": COPIES,
    "tile": 6,
    "devices": 1,
}


@pytest.fixture(scope="module")
def samples() -> tn.Samples:
    return tn.sample(TARGET, TEMPERATURES, validation=VALIDATION, test=TEST, **SHORT)


def test_samples_are_the_results_of_a_sweep(samples: tn.Samples) -> None:
    assert isinstance(samples, SweepResults)
    np.testing.assert_array_equal(samples.temperatures, TEMPERATURES)
    assert samples.energy.shape == (COPIES, ROUNDS, 3)
    assert samples.series.energy.attrs["units"] == "nats"
    assert samples.swap_rate.shape == (2,) and np.all(samples.swap_rate > 0)
    assert len(samples.verdict.reasons) == 3
    assert samples.best is not None and samples.best.temperature in TEMPERATURES
    for found in (samples.train_loss, samples.test_loss, samples.test_accuracy):
        assert found.mean.shape == found.error.shape == (3,)
    np.testing.assert_allclose(
        samples.train_loss.mean, samples.energy.mean(axis=(0, 1)) / 12, rtol=1e-5
    )


def test_samples_print_as_a_short_table(samples: tn.Samples) -> None:
    text = repr(samples)
    assert len(text.splitlines()) < 20 and max(map(len, text.splitlines())) < 200
    assert "3-4-2 on 12 images" in text and "test loss" in text and "verdict" in text
    many = tn.sample(
        tn.Target.from_energy(lambda w: np.float32(0.5) * (w["w"] ** 2).sum(), _prior()),
        np.geomspace(0.1, 10, 40),
        **{**SHORT, "tile": 40, "rounds": 8, "burn_in": 4},
    )
    assert repr(many).count("e+") < 20 and len(repr(many).splitlines()) < 40


def _prior() -> tn.Gaussian:
    like = {"w": np.zeros((1,), np.float32)}
    return tn.Gaussian({"w": 1.0}, like)


def test_samples_predict_by_the_networks_kept(samples: tn.Samples) -> None:
    inputs = TEST.x[:7]
    probabilities = samples.predict(inputs, temperature=1.0)
    assert probabilities.shape == (7, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    kept = samples.weights(1.0)
    assert len(kept[0].weight) == COPIES * 5
    by_hand = [_softmax(kept, member, inputs) for member in range(COPIES * 5)]
    np.testing.assert_allclose(probabilities, np.mean(by_hand, axis=0), rtol=1e-4)
    assert samples.predict(inputs).shape == (7, 2)
    with pytest.raises(tn.ConfigError, match="kept no weights at T = 50"):
        samples.predict(inputs, temperature=50.0)


def _softmax(kept: tuple, member: int, inputs: np.ndarray) -> np.ndarray:
    hidden = 1 / (1 + np.exp(-(inputs @ kept[0].weight[member].T + kept[0].bias[member])))
    scores = hidden @ kept[1].weight[member].T + kept[1].bias[member]
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def test_samples_are_saved_and_loaded(samples: tn.Samples, tmp_path: Path) -> None:
    loaded = tn.load(samples.save(tmp_path / "samples.nc"))
    assert type(loaded) is tn.Samples
    assert repr(loaded) == repr(samples)
    np.testing.assert_array_equal(loaded.energy, samples.energy)
    np.testing.assert_array_equal(loaded.predict(TEST.x), samples.predict(TEST.x))
    for name in samples.summary.data_vars:
        np.testing.assert_allclose(
            loaded.summary[name], samples.summary[name], rtol=1e-5, err_msg=str(name)
        )
    with pytest.raises(tn.ConfigError, match=r"ends in \.nc"):
        samples.save(tmp_path / "samples.csv")
    (tmp_path / "other.nc").write_bytes(b"nothing")
    with pytest.raises(tn.StoreError, match="cannot be read"):
        tn.load(tmp_path / "other.nc")


def test_samples_are_drawn(samples: tn.Samples, tmp_path: Path) -> None:
    written = samples.plot(tmp_path)
    assert tmp_path / "fig3-loss.png" in written and all(path.exists() for path in written)


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[str, int, int]] = []
    tn.sample(
        TARGET,
        TEMPERATURES,
        **{**SHORT, "rounds": 4, "burn_in": 8},
        progress=True,
        progress_fn=lambda *progress: told.append(progress),
    )
    assert ("burn-in", 8, 8) in told and ("sample", 4, 4) in told
    assert "sample" in capsys.readouterr().err


def test_an_adaptive_ladder_moves_its_inner_temperatures() -> None:
    moved = tn.sample(TARGET, (0.2, 0.21, 20.0), adaptive=True, **SHORT).temperatures
    assert moved[0] == 0.2 and moved[2] == 20.0 and moved[1] > 0.3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"test": TEST.x}, "test must be tempernet.data.Examples, got ndarray"),
        ({"rounds": 0}, "rounds must be a whole number, at least 1, got 0"),
        ({"keep": -1}, "keep must be a whole number, at least 0, got -1"),
        ({"start": "cold"}, "start must be one of apart, annealed, minimised, prior, got 'cold'"),
    ],
)
def test_wrong_arguments_are_told(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(tn.ConfigError) as error:
        tn.sample(TARGET, TEMPERATURES, **(SHORT | wrong))
    assert str(error.value) == said


@pytest.mark.parametrize("method", ["temperature", "bridge"])
def test_an_evidence_is_the_results_of_a_run(method: str) -> None:
    found = tn.log_evidence(
        TARGET,
        method=method,  # type: ignore[arg-type]
        num=6,
        fit_burn_in=10,
        fit_rounds=20,
        **{**SHORT, "rounds": 100, "tile": 12},
    )
    assert isinstance(found, EvidenceResults) and found.method == method
    mean, error = found.log_evidence
    # Twelve examples of two classes: log 1/2 each at worst.
    assert -12 < mean < 0 and 0 < error < 3
    assert set(found.log_integrals) >= {"bar", "mbar", "simpson"}
