"""The steps of a study, at every scale, and what it keeps between them."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from tempernet.config import EvidenceSettings, SweepSettings
from tempernet.errors import ConfigError, StoreError
from tempernet.paper.claims.judging import is_the_papers
from tempernet.paper.programs import compiling
from tempernet.paper.scales import SCALES
from tempernet.paper.steps import PARTS, steps_of
from tempernet.paper.study import Study

MODELS = {"m1": "M1", "m3": "M3", "m3star": "M3star"}


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_the_same_steps(scale: str) -> None:
    steps = steps_of(scale)
    assert [step.name for step in steps] == [step.name for step in steps_of("paper")]
    assert {part for step in steps for part in step.parts} == set(PARTS)
    for step in steps:
        assert step.name.endswith(f"-{step.settings.protocol}")
        assert step.settings.run.seed >= 0
        if isinstance(step.settings, SweepSettings):
            assert step.settings.run.copies >= 2, "one copy has no error"


@pytest.mark.parametrize("scale", ["hour", "day", "paper"])
def test_larger_scales_have_the_papers_networks_priors_and_data(scale: str) -> None:
    for step in steps_of(scale):
        parts = step.name.split("-")
        network = next(MODELS[part] for part in parts if part in MODELS)
        images = next(
            (int(part[1:]) for part in parts if part[0] == "d" and part[1:].isdigit()), 500
        )
        examples = step.settings.data.n_train
        assert is_the_papers(step.settings, examples, network, images)
        assert not is_the_papers(step.settings, examples, network, images + 1)


def test_the_scale_of_the_paper_is_table_1() -> None:
    for step in steps_of("paper"):
        if not isinstance(step.settings, SweepSettings):
            continue
        assert isinstance(step.settings, SweepSettings)
        ladder, dynamics = step.settings.ladder, step.settings.dynamics
        star = step.settings.network.name == "M3star"
        assert ladder.num == (84 if star else 112)
        assert (ladder.low, ladder.high) == ((10**-1.5, 10**1.5) if star else (0.01, 100.0))
        assert (dynamics.num_trajectories, dynamics.num_steps) == (10, 100)
    settings = {step.name: step.settings for step in steps_of("paper")}
    for name in ("evidence-m1-paper", "evidence-m3-paper"):
        bridge = settings[name]
        assert isinstance(bridge, EvidenceSettings)
        run = bridge.run
        assert (bridge.path.num, run.copies, run.burn_in, run.rounds) == (102, 28, 100, 100)


def test_parts_choose_steps(tmp_path: Path) -> None:
    def names(*only: str) -> list[str]:
        return [step.name for step in Study.begin(tmp_path / "new", "smoke", only).wanted]

    assert names("evidence") == [
        "evidence-m1-default",
        "evidence-m1-paper",
        "evidence-m3-default",
        "evidence-m3-paper",
    ]
    assert names("fig2") == ["m3-d500-default", "m3-d500-paper"]
    assert {"optimise-m3-d50-default", "m3-d5000-paper"} < set(names("fig3"))
    assert names("m3-d50-paper", "fig2")[0] == "m3-d50-paper"
    assert len(names()) == len(steps_of("smoke"))
    with pytest.raises(ConfigError, match="did you mean widths"):
        names("width")


def test_a_study_is_opened_as_it_was_begun(tmp_path: Path) -> None:
    Study.begin(tmp_path, "smoke", ["fig2"]).write()
    assert Study.open(tmp_path).only == ("fig2",)
    assert Study.begin(tmp_path, None, None).only == ("fig2",)
    assert (
        Study.begin(tmp_path, "smoke", []).only
        == Study.begin(tmp_path, "smoke", ["all"]).only
        == ()
    )
    assert Study.open(tmp_path).status()["finished"] is False
    with pytest.raises(StoreError, match="holds a study of scale smoke, not day"):
        Study.begin(tmp_path, "day", None)
    with pytest.raises(StoreError, match="holds no study"):
        Study.open(tmp_path / "nowhere")


def test_programs_are_kept_and_the_users_settings_left_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "jax_compilation_cache_dir"
    before = jax.config.values[name]
    jax.config.update(name, None)
    try:
        with compiling(tmp_path, tiny=False):
            own = jax.config.values[name]
            jax.jit(lambda x: jnp.sin(x) * 37.25)(jnp.ones(3)).block_until_ready()
        assert Path(own).parent == tmp_path / "programs" and any(Path(own).iterdir())
        # On another processor the same machine code may be illegal.
        monkeypatch.setattr("tempernet.paper.programs.processor", lambda: "another")
        with compiling(tmp_path, tiny=False):
            assert jax.config.values[name] != own
        assert jax.config.values[name] is None
        jax.config.update(name, str(tmp_path / "own"))
        with compiling(tmp_path, tiny=True):
            assert jax.config.values[name] == str(tmp_path / "own")
            assert jax.config.values["jax_disable_most_optimizations"]
        assert not jax.config.values["jax_disable_most_optimizations"]
    finally:
        jax.config.update(name, before)
