"""A source: labelled data as stored, checked once, to take training and held-out examples from."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tempernet.data import checks, images, normalise, subsets
from tempernet.data.examples import Dataset, Examples
from tempernet.errors import DataError


@dataclass(frozen=True, eq=False)
class Source:
    """Training and test data as stored; the arrays are checked and made read-only.

    Attributes:
        name: what to call the data in reports.
        x_train: uint8 or float, shape (n, features), (n, height, width) or (n, height, width,
            channels).
        y_train: integers in 0..classes-1, shape (n,).
        x_test, y_test: the same for the official test set, which may have length 0.
        classes: number of classes.
        mean_std: mean and standard deviation to normalise with; None takes those of the chosen
            training examples.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    classes: int
    mean_std: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for x_name in ("x_train", "x_test"):
            object.__setattr__(
                self, x_name, checks.pixels(f"{self.name}: {x_name}", getattr(self, x_name))
            )
        self._check_together()
        classes = checks.whole_number(f"{self.name}: classes", self.classes, 2, checks.MAX_CLASSES)
        object.__setattr__(self, "classes", classes)
        for x_name, y_name in (("x_train", "y_train"), ("x_test", "y_test")):
            y = checks.labels(f"{self.name}: {y_name}", getattr(self, y_name), classes)
            checks.same_length(f"{self.name}: {x_name}", getattr(self, x_name), y_name, y)
            object.__setattr__(self, y_name, y)

    @property
    def pixel_range(self) -> float:
        """What stored pixels are divided by before normalisation: 255 for uint8, 1 for floats."""
        return normalise.pixel_range(self.x_train.dtype)

    def resized(self, size: int | tuple[int, int]) -> "Source":
        """Return this source with its images resized to `size` = side or (height, width)."""
        return replace(
            self,
            x_train=images.resize(f"{self.name}: x_train", self.x_train, size),
            x_test=images.resize(f"{self.name}: x_test", self.x_test, size),
        )

    def split(
        self,
        n_train: int | None = None,
        *,
        seed: int = 0,
        indices: npt.ArrayLike | None = None,
        n_validation: int = 0,
    ) -> Dataset:
        """Choose training examples; what is left of the training set joins the test set.

        Args:
            n_train: number of training examples, a multiple of `classes`, as many of each class.
                The classes are dealt out in turn, so `split(50)` trains on the first 50 of
                `split(500)`.
            seed: 0..2**32-1. The same `n_train` and `seed` always choose the same examples.
            indices: exactly these positions of the training set, in this order, instead of
                `n_train`. With neither, the whole training set.
            n_validation: number of examples taken, as evenly over the classes as possible, from
                unused training examples, and from the official test set only when these run out.
                Does not affect `train`.

        Example:
            >>> data = mnist16().split(500, n_validation=1000)
            >>> len(data.train), len(data.validation), len(data.test)
            (500, 1000, 68500)
        """
        chosen = self._training_positions(n_train, seed, indices)
        unused = np.setdiff1d(np.arange(len(self.y_train)), chosen, assume_unique=True)
        (from_unused, unused_rest), (from_test, test_rest) = subsets.choose_validation(
            [self.y_train[unused], self.y_test], self.classes, n_validation, seed
        )
        nothing = np.empty(0, np.int64)
        train = self._gather(chosen, nothing)
        validation = self._gather(unused[from_unused], from_test)
        test = self._gather(unused[unused_rest], test_rest, test_first=True)

        mean, std = self.mean_std or normalise.mean_std(self.name, train[0])

        def examples(group: tuple[np.ndarray, np.ndarray]) -> Examples:
            return Examples(normalise.normalise(self.name, group[0], mean, std), group[1])

        return Dataset(
            name=self.name,
            train=examples(train),
            validation=examples(validation),
            test=examples(test),
            classes=self.classes,
            indices=checks.read_only(chosen),
            mean=mean,
            std=std,
            sha256=_fingerprint([train, validation, test], self.classes, self.mean_std),
        )

    def _check_together(self) -> None:
        """Raise unless there is training data, test data like it, and a usable normalisation."""
        if len(self.x_train) == 0:
            raise DataError(f"{self.name}: x_train has 0 examples; at least 1 is needed")
        if (
            self.x_test.shape[1:] != self.x_train.shape[1:]
            or self.x_test.dtype != self.x_train.dtype
        ):
            raise DataError(
                f"{self.name}: x_test holds {self.x_test.dtype} examples of shape "
                f"{self.x_test.shape[1:]}; allowed is what x_train holds, {self.x_train.dtype} of "
                f"shape {self.x_train.shape[1:]}: convert one of them"
            )
        if self.mean_std is not None and not (
            np.isfinite(self.mean_std).all() and self.mean_std[1] > 0
        ):
            raise DataError(
                f"{self.name}: mean_std must be a finite mean and a positive std, got "
                f"{self.mean_std}: give None to use those of the training examples"
            )

    def _training_positions(
        self, n_train: int | None, seed: int, indices: npt.ArrayLike | None
    ) -> npt.NDArray[np.int64]:
        if n_train is not None and indices is not None:
            raise DataError(
                f"got both n_train = {n_train} and indices; allowed is one of them: leave the "
                "other out"
            )
        if indices is not None:
            return subsets.check_training(indices, len(self.y_train))
        if n_train is not None:
            return subsets.choose_training(self.y_train, self.classes, n_train, seed)
        return np.arange(len(self.y_train), dtype=np.int64)

    def _gather(
        self, of_train: np.ndarray, of_test: np.ndarray, *, test_first: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return stored pixels and labels at positions of the training and the test set."""
        parts = [
            (self.x_train[of_train], self.y_train[of_train]),
            (self.x_test[of_test], self.y_test[of_test]),
        ]
        if test_first:
            parts.reverse()
        return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def _fingerprint(
    groups: Sequence[tuple[np.ndarray, np.ndarray]],
    classes: int,
    mean_std: tuple[float, float] | None,
) -> str:
    """Hash stored content: the last bit of normalised floats may differ between machines."""
    digest = hashlib.sha256(json.dumps([classes, mean_std]).encode())
    for group in groups:
        for array in group:
            little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(json.dumps([array.dtype.name, array.shape]).encode())
            digest.update(little_endian.tobytes())
    return digest.hexdigest()
