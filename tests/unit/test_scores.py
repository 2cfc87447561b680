"""Loss, accuracy and calibration of an ensemble, where the answer is known by hand."""

import numpy as np
import pytest

from tempernet.model.scores import calibration_error, ensemble_score

PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8], [0.2, 0.45, 0.35]])
LABELS = np.array([0, 1, 2, 1])


def test_scores_by_hand() -> None:
    score = ensemble_score(PROBABILITIES, LABELS)
    assert score.loss == pytest.approx(-np.log(0.7 * 0.4 * 0.8 * 0.45) / 4)
    assert score.accuracy == 0.75
    # Confidences 0.7, 0.5, 0.8 and 0.45 are in bins of their own: right, wrong, right, right.
    assert score.calibration == pytest.approx((0.3 + 0.5 + 0.2 + 0.55) / 4)


def test_scores_of_many_rungs_are_those_of_each() -> None:
    both = ensemble_score(np.stack([PROBABILITIES, PROBABILITIES[:, ::-1]]), LABELS)
    for k, single in enumerate([PROBABILITIES, PROBABILITIES[:, ::-1]]):
        for many, one in zip(both, ensemble_score(single, LABELS), strict=True):
            assert many.shape == (2,) and many[k] == pytest.approx(one)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_truth_that_was_thought_impossible_costs_much_but_not_infinitely_much(
    dtype: type,
) -> None:
    score = ensemble_score(np.array([[1.0, 0.0]], dtype), np.array([1]))
    assert score.loss == pytest.approx(-np.log(np.finfo(dtype).tiny)) and score.calibration == 1


def test_errors_in_one_bin_of_confidence_cancel_and_in_two_do_not() -> None:
    correct = np.array([True, False])
    assert calibration_error(np.array([0.501, 0.499]), correct) == pytest.approx(0, abs=1e-12)
    assert calibration_error(np.array([0.55, 0.45]), correct) == pytest.approx(0.45)
    assert calibration_error(np.array([1.0, 1.0]), correct) == pytest.approx(0.5)


def test_perfect_calibration_has_nearly_no_error_and_overconfidence_has() -> None:
    rng = np.random.default_rng(7)
    truth = rng.uniform(0.3, 1, size=200_000)
    correct = rng.uniform(size=200_000) < truth
    assert calibration_error(truth, correct) < 0.005
    assert calibration_error(np.minimum(1, truth + 0.1), correct) > 0.08
