"""What an estimator of evidence is given: the energy terms recorded along a path.

On every path here the coefficients c are linear in beta, the coefficient of E, so with f = dc/dbeta
. phi

    d log Z / d beta = -<f>,        u_{k+1} - u_k = (beta_{k+1} - beta_k) f .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PathSamples:
    """Energy terms recorded at the rungs of a path."""

    coefficients: NDArray[np.floating]
    """Coefficients c of the rungs, (K, M)."""
    phi: NDArray[np.floating]
    """Energy terms, (copies, rounds, K, M)."""

    @property
    def beta(self) -> NDArray[np.floating]:
        """The coefficient of E, (K,)."""
        return self.coefficients[:, 0]

    @property
    def slope(self) -> NDArray[np.float64]:
        """f = dc/dbeta . phi, (copies, rounds, K)."""
        ends = self.coefficients[-1] - self.coefficients[0]
        slope: NDArray[np.float64] = np.asarray(self.phi, np.float64) @ (ends / ends[0])
        return slope

    @property
    def work(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """u_{k+1} - u_k of the samples of rung k, and of those of k + 1: (copies, rounds, K-1)."""
        gaps, slope = np.diff(self.beta), self.slope
        return gaps * slope[..., :-1], gaps * slope[..., 1:]
