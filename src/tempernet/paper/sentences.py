"""Sentences about claims: what the paper says, what runs give, and why a claim is undecided."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tempernet.diagnostics.statistics import Estimate
from tempernet.paper.claims import VERDICTS, Cause, Claim, Finding, Kind, Statement, Why
from tempernet.paper.claims.claim import Value, Values
from tempernet.report.formatting import with_error

NO_RUN = "no run"
BY_PATH = (Kind.INTEGRAL, Kind.BAYES_FACTOR, Kind.SHALLOW)
"""Claims about numbers that a path of distributions gives."""
NAMES = {
    Kind.FLOOR: "The training loss of M3star has the floor 1.46",
    Kind.WIDTH: "After minimisation max |w| sqrt(k) of {network} is typically",
    Kind.STEPS: "Alg. 3 takes {network} on D_{images} to E = 0 in",
    Kind.BEST: "{network} on D_{images} has its least test loss at",
    Kind.POSTERIOR_GAIN: "{network} on D_{images}: T = 1 has a lower test loss than optimisation",
    Kind.HOT_UNINFORMED: "{network} on D_{images}: at high T the test loss is above that of the "
    "uninformed classifier",
    Kind.HOT_OPTIMISED: "{network} on D_{images}: at high T the test loss is above that of "
    "optimisation",
    Kind.CROSSING: "The T above which the test loss of {network} exceeds the uninformed one grows "
    "with the data",
    Kind.NEVER_INFORMED: "{network} on D_{images} has a test loss above the uninformed one at all "
    "temperatures",
    Kind.NO_MINIMUM: "{network} on D_{images} has its least test loss at T << 1, and no minimum",
    Kind.FEW_IMAGES: "On D_{images} the best test loss of M3star is that of M3, within 10 %",
    Kind.BELOW_FLOOR: "On D_{images} the best test loss of {network} is below the floor of M3star",
    Kind.ONE_PEAK: "{network} on D_{images} has no first-order transition: energies with one peak "
    "(bimodality below 5/9)",
    Kind.GRADUAL: "{network} on D_{images}: the transition is gradual, heat capacity below 3 times "
    "its median everywhere",
    Kind.EQUAL_SWAPS: "{network} on D_{images}: a geometric ladder swaps nearly equally often "
    "everywhere (least / greatest above 1/2)",
    Kind.VOLUME: "log prior volume of {network}",
    Kind.INTEGRAL: "log integral of exp(-E) of {network} on D_{images}",
    Kind.BAYES_FACTOR: "log Bayes factor of M3 against M1 on D_{images}",
    Kind.SHALLOW: "The evidence on D_{images} favours M1 over M3",
}
"""What is claimed, of each kind."""
WHYS = {
    Cause.NO_RUN: "the run {run} has not been made: tempernet reproduce --out STUDY --only {run}",
    Cause.OTHER_MODEL: "{run} has {network_found} on {images_found} images, the claim is about "
    "{network} on {images} images of 16x16: use a larger --scale",
    Cause.ESTIMATORS_DISAGREE: "the estimators of {run} disagree",
    Cause.NO_ERROR: "the error is unknown: at least two copies and more rounds are needed",
    Cause.SAME_VALUE: "the two values cannot be told apart: an error more than {times:.0f} times "
    "smaller than {error:.2g} would be needed",
    Cause.LARGE_ERROR: "the error is {error:.2g}, and one below {wanted:.2g} is needed: about "
    "{longer:.1f} times the rounds",
    Cause.ERROR_ABOVE_PAPERS: "our error is {error:.3g}, and one below the paper's {papers:.3g} is "
    "needed",
    Cause.NOT_SCORED: "{run} has no {scored} loss: run.rounds must be at least run.score_every",
    Cause.NO_POSTERIOR: "{run} has no temperature near 1, the nearest is {nearest:.3g}",
    Cause.UNRESOLVED: "the minimum of {run} at T = {temperature:.3g} ({low:.3g} to {high:.3g}) is "
    "not resolved: more rounds or a wider ladder are needed",
    Cause.WIDE_INTERVAL: "the interval from {low:.3g} to {high:.3g} is too wide: more rounds are "
    "needed",
    Cause.CROSSINGS_OVERLAP: "the crossings overlap: more temperatures (ladder.num) and rounds "
    "around them are needed",
    Cause.NOT_MINIMISED: "{reached} of {starts} starts of {run} reached E = 0, and {kept} networks "
    "were kept: raise optimise.max_gradients or optimise.starts",
    Cause.FEW_MINIMA: "fewer than {starts} starts of {run} reached the minimum: raise "
    "optimise.max_gradients or optimise.starts",
    Cause.ABOVE_FLOOR: "the lowest loss {least:.4f} is not near the floor {floor:.4f}: minimise "
    "M3star longer (--only widths)",
    Cause.MEDIAN_UNCLEAR: "the median of {run} may lie on either side of {steps} steps: raise "
    "optimise.starts, or optimise.max_gradients above it",
}
"""Why something cannot be told, by its cause; see `why` for the one that is missing."""


def name(statement: Statement) -> str:
    """What is claimed."""
    return NAMES[statement.kind].format(network=statement.network, images=statement.images)


def printed(statement: Statement) -> str:
    """What the paper says."""
    value = statement.printed
    if isinstance(value, Estimate):
        return f"{float(value.mean):,.0f} ± {float(value.error):.0f}"
    if statement.kind is Kind.VOLUME:
        return f"{value:,.0f}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def told(statement: Statement, side: tuple[Finding, ...] | Why) -> str:
    """What a protocol gives.

    Args:
        statement: the claim's.
        side: its findings, or why there are none.
    """
    if isinstance(side, Why):
        return NO_RUN if side.cause is Cause.NO_RUN else f"cannot be told: {why(side)}"
    separator = _SEPARATORS.get(statement.kind, "; ")
    return separator.join(_finding(statement.kind, finding) for finding in side)


def why(found: Why) -> str:
    """Why a claim is undecided."""
    if found.cause is Cause.NOT_EQUILIBRATED:
        return _not_equilibrated(found)
    return WHYS[found.cause].format(run=found.run, **found.values)


def verdict(claim: Claim) -> str:
    """The verdict, with the reason if it is undecided."""
    return claim.verdict if claim.why is None else f"{claim.verdict}: {why(claim.why)}"


def counted(claims: Sequence[Claim]) -> str:
    """`Of 34 claims, 3 hold, 1 does not hold, and 30 are undecided.`, as numbers have it."""
    held, failed, undecided = (
        sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS
    )
    return (
        f"Of {len(claims)} claims, {held} {_verb(held, 'holds', 'hold')}, "
        f"{failed} {_verb(failed, 'does', 'do')} not hold, "
        f"and {undecided} {_verb(undecided, 'is', 'are')} undecided at this scale."
    )


def document(claim: Claim) -> dict[str, object]:
    """A claim for JSON: its sentences, and the data that they are made of."""
    statement = claim.statement
    undecided = None
    if claim.why is not None:
        undecided = {"text": why(claim.why), **_why_document(claim.why)}
    return {
        "section": statement.section,
        "claim": name(statement),
        "kind": str(statement.kind),
        "network": statement.network or None,
        "images": statement.images or None,
        "paper": {"text": printed(statement), "value": _plain(statement.printed)},
        "paper_protocol": _side_document(statement, claim.papers),
        "default_protocol": _side_document(statement, claim.ours),
        "verdict": claim.verdict,
        "why": undecided,
    }


def _side_document(statement: Statement, side: tuple[Finding, ...] | Why) -> dict[str, object]:
    text = told(statement, side)
    if isinstance(side, Why):
        return {"text": text, "why": _why_document(side)}
    found = [{"trusted": each.trusted, **_plain_values(each.values)} for each in side]
    return {"text": text, "found": found}


def _why_document(found: Why) -> dict[str, object]:
    run = {"run": found.run} if found.run else {}
    return {"cause": str(found.cause), **run, **_plain_values(found.values)}


def _plain_values(values: Values) -> dict[str, object]:
    return {key: _plain(value) for key, value in values.items()}


def _plain(value: Value) -> object:
    if isinstance(value, Estimate):
        return {"value": float(value.mean), "error": float(value.error)}
    return value


def _finding(kind: Kind, finding: Finding) -> str:
    """A finding in words, with a warning if it is not to be trusted."""
    text = _TOLD[kind](finding.values)
    if kind in BY_PATH:
        warning = "" if finding.trusted else ", not to be trusted"
        return f"{text} ({finding.values['method']} path{warning})"
    return text if finding.trusted else f"{text} (not equilibrated)"


def _loss(values: Values) -> str:
    """A loss, where it is, or how many optimised networks have it."""
    if "temperature" in values:
        return _fill("{loss} at T = {temperature:.3g}", values)
    if values["reached"] == values["networks"]:
        return _fill("optimised {loss}", values)
    return _fill("optimised {loss} ({reached} of {networks} at E = 0)", values)


def _best(values: Values) -> str:
    clear = "" if values["resolved"] else ", not resolved"
    template = "T = {temperature:.3g} ({low:.3g} to {high:.3g}{clear}), loss {loss}"
    return _fill(template, {**values, "clear": clear})


def _crossing(values: Values) -> str:
    low = "clearly below up to {low:.3g}" if values["low"] else "nowhere clearly below"
    high = "clearly above from {high:.3g}"
    if values["high"] == math.inf:
        high = "nowhere clearly above to the end"
    return _fill(f"D_{{images}}: {low}, {high}", values)


def _steps(values: Values) -> str:
    if values["median"] == math.inf:
        return _fill("{method}: more than {budget}; E = {least_energy:.3g} at best", values)
    return _fill("{method}: {median:.0f} (median; {low:.0f} to {high:.0f})", values)


def _swaps(values: Values) -> str:
    how = "measured" if values["measured"] else "from the barrier"
    rates = _fill("{low:.0%} to {high:.0%}", values).replace("%", " %")
    return f"{rates}, {how}; least / greatest {_fill('{evenness}', values)}"


def _template(template: str) -> Callable[[Values], str]:
    return lambda values: _fill(template, values)


_NUMBER = _template("{number}")
_TOLD: Mapping[Kind, Callable[[Values], str]] = {
    Kind.FLOOR: _template("{loss:.4f}"),
    Kind.WIDTH: _template(
        "{method}: {median:.3g} ({low:.3g} to {high:.3g}; {at_minimum} of {starts} at the minimum)"
    ),
    Kind.STEPS: _steps,
    Kind.BEST: _best,
    Kind.POSTERIOR_GAIN: _loss,
    Kind.HOT_UNINFORMED: _loss,
    Kind.HOT_OPTIMISED: _loss,
    Kind.CROSSING: _crossing,
    Kind.NEVER_INFORMED: _template("least {loss} at T = {temperature:.3g}"),
    Kind.NO_MINIMUM: _best,
    Kind.FEW_IMAGES: _template("{network} {loss}"),
    Kind.BELOW_FLOOR: _loss,
    Kind.ONE_PEAK: _template(
        "bimodality {bimodality} at T = {temperature:.3g}; "
        "least overlap of neighbours {least_overlap:.2f}"
    ),
    Kind.GRADUAL: _template("C = {greatest} at T = {temperature:.3g}, median {median:.3g}"),
    Kind.EQUAL_SWAPS: _swaps,
    Kind.VOLUME: _template("{log_volume:,.3f}"),
    Kind.INTEGRAL: _NUMBER,
    Kind.BAYES_FACTOR: _NUMBER,
    Kind.SHALLOW: _NUMBER,
}
"""What a run gives, of each kind of claim."""
_SEPARATORS = {
    Kind.POSTERIOR_GAIN: ", against ",
    Kind.HOT_OPTIMISED: ", against ",
    Kind.FEW_IMAGES: ", ",
}


def _fill(template: str, values: Values) -> str:
    """A template with numbers that have errors written as `2.02(7)`."""
    written = {
        key: with_error(float(value.mean), float(value.error))
        if isinstance(value, Estimate)
        else value
        for key, value in values.items()
    }
    return template.format(**written)


def _not_equilibrated(found: Why) -> str:
    failed, asked = found.values["failed"], found.values["asked"]
    if asked == 1:
        return f"{found.run} has not equilibrated at that temperature"
    if failed == asked:
        return f"none of the {asked} temperatures of {found.run} has equilibrated"
    return f"{failed} of the {asked} temperatures of {found.run} have not equilibrated"


def _verb(number: int, one: str, many: str) -> str:
    return one if number == 1 else many
