"""What is measured: the network, the ladder, the work of one step, and the goals.

Imports nothing heavy.
"""

from __future__ import annotations

from itertools import pairwise

SIZES = (256, 40, 40, 40, 10)
"""M3, 13,970 parameters."""
REPLICAS = 112
COLDEST, HOTTEST = 0.01, 100.0
STEP_SIZE = 1e-3
"""Reduced units; the same for all rungs and samplers, and irrelevant to the time."""

STEPS = {50: 100, 500: 50, 5000: 10}
"""L for each data set: rounds of about a second."""
QUICK_STEPS = {50: 10, 500: 4, 5000: 1}

OURS, REJECTING, REPRODUCIBLE = "tempernet", "tempernet-rejecting", "tempernet-reproducible"
"""The default, with reflecting walls; Alg. 1 as printed; the same bits on any number of devices."""
BLACKJAX, TFP = "blackjax", "tfp"
SAMPLERS = (OURS, REJECTING, REPRODUCIBLE, BLACKJAX, TFP)
PEERS = (BLACKJAX, TFP)
SGEMM, MEMORY, GRADIENTS, WHOLE = "sgemm", "memory", "gradients", "whole"

FRACTION_GOAL = {50: 0.42, 500: 0.60, 5000: 0.55}
"""Share of SGEMM's rate, at least."""
RATIO_GOAL = {50: 1.5, 500: 1.25, 5000: 1.1}
"""Times the speed of the faster peer on the same work, rejecting walls, at least."""
PEAK_GOAL = {5000: 1.5e9}
"""Bytes of peak resident memory, below."""
WHOLE_GOAL = 0.85
"""Share of the engine's own rate that a whole sweep has, at least.

That is one with records, scores, checkpoints, results and figures.
"""
WHOLE_ROUNDS = 40
LONG_RUN = 1000
"""Rounds that results and figures are spread over."""
MANY_REPLICAS = 1000
MANY_REPLICAS_PEAK_GOAL = 2e9


def flops(num_examples: int) -> float:
    """Work of one gradient of all replicas: R n (6 sum(in out) - 2 in_1 out_1).

    A product takes 2 in out an example, once forward and twice backward; the first layer has no
    gradient with respect to its inputs.
    """
    products = sum(fan * out for fan, out in pairwise(SIZES))
    return REPLICAS * num_examples * (6.0 * products - 2.0 * SIZES[0] * SIZES[1])
