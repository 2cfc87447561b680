"""Settings: from presets, files and --set to frozen tables and back, and refusals that say what to
do.
"""

import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tempernet import config
from tempernet.config import (
    PRESETS,
    EvidenceSettings,
    SweepSettings,
    differences,
    parse_assignment,
    resolve,
    settings_from,
)
from tempernet.errors import ConfigError


def flat(settings: SweepSettings) -> dict[str, Any]:
    return {
        f"{table}.{name}": value
        for table, values in settings.model_dump().items()
        if isinstance(values, dict)
        for name, value in values.items()
    }


@pytest.mark.parametrize("protocol", ["default", "paper"])
@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_every_preset_resolves_under_every_protocol(
    preset: str | None, protocol: str, tmp_path: Path
) -> None:
    settings = resolve(SweepSettings, preset=preset, protocol=protocol)
    assert settings.protocol == protocol
    said = flat(settings)
    for table, values in {**(PRESETS[preset][1] if preset else {})}.items():
        for name, value in values.items():
            assert said[f"{table}.{name}"] == value
    for table, values in (SweepSettings.paper_fixes if protocol == "paper" else {}).items():
        for name, value in values.items():
            assert said[f"{table}.{name}"] == value
    # As a run writes it, and reads it back.
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml(settings))
    assert resolve(SweepSettings, file=path) == settings
    assert settings_from(settings.model_dump(), SweepSettings) == settings


def test_nothing_said_is_the_defaults() -> None:
    assert resolve(SweepSettings) == SweepSettings() == settings_from({}, SweepSettings)


def test_presets_of_the_paper_are_its_figures_and_table_1() -> None:
    figure = resolve(SweepSettings, preset="paper-d500", protocol="paper")
    assert (figure.network.name, figure.data.n_train, figure.prior.factor) == ("M3", 500, 50.0)
    assert (figure.ladder.low, figure.ladder.high, figure.ladder.num) == (0.01, 100.0, 112)
    assert (figure.dynamics.num_steps, figure.dynamics.num_trajectories) == (100, 10)
    star = resolve(SweepSettings, preset="paper-m3star-d50")
    assert (star.network.name, star.data.n_train, star.prior.factor, star.ladder.num) == (
        "M3star",
        50,
        1000.0,
        84,
    )
    assert star.ladder.low * star.ladder.high == pytest.approx(1)


def test_later_settings_win_and_presets_stay_as_they_are(tmp_path: Path) -> None:
    before = repr(PRESETS)
    path = tmp_path / "mine.toml"
    path.write_text("[run]\nrounds = 11\nburn_in = 12\ncopies = 13\n[ladder]\nnum = 14\n")
    settings = resolve(
        SweepSettings,
        preset="quick",
        file=path,
        extra={"run": {"burn_in": 22}, "data": {"n_train": 23}},
        assignments=["run.copies=33", "ladder.high=34", "ladder.high=35"],
    )
    run, ladder = settings.run, settings.ladder
    assert (run.rounds, run.burn_in, run.copies, run.score_every) == (11, 22, 33, 10)
    assert (ladder.num, ladder.high, ladder.low, settings.data.n_train) == (14, 35.0, 0.5, 23)
    assert repr(PRESETS) == before


def test_the_protocol_is_the_last_one_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('protocol = "paper"\n')
    assert resolve(SweepSettings, file=path).protocol == "paper"
    assert resolve(SweepSettings, file=path, assignments=["protocol=default"]).protocol == "default"
    assert resolve(SweepSettings, file=path, protocol="default").dynamics.walls == "reflect"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        setattr(SweepSettings().run, "rounds", 3)  # noqa: B010


def test_odd_values_survive_the_file(tmp_path: Path) -> None:
    settings = settings_from(
        {
            "data": {"source": 'C:\\"Ärger"\n\t=#[]', "indices": "x'y"},
            "ladder": {"kind": "listed", "temperatures": [1e-9, 0.1, 1 / 3, 1e22, math.inf]},
            "run": {"keep_temperatures": [1], "reproducible": True},
            "prior": {"factor": 1e-300},
        },
        SweepSettings,
    )
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml(settings), encoding="utf-8")
    assert resolve(SweepSettings, file=path) == settings


def test_the_template_says_nothing_and_with_every_line_uncommented_still_the_defaults(
    tmp_path: Path,
) -> None:
    text = config.template(SweepSettings)
    assert settings_from(tomllib.loads(text), SweepSettings) == SweepSettings()
    uncommented, found = re.subn(r"(?m)^# (?=\w+ = )", "", text)
    # All of them, and the protocol; the task is said.
    assert found == len(flat(SweepSettings())) + 1
    tables = tomllib.loads(uncommented)
    assert (
        sum(len(values) if isinstance(values, dict) else 1 for values in tables.values())
        == found + 1
    )
    path = tmp_path / "config.toml"
    path.write_text(uncommented)
    assert resolve(SweepSettings, file=path) == SweepSettings()


def test_a_line_of_the_template_can_be_changed_and_shows_what_it_may_be() -> None:
    text = config.template(SweepSettings)
    changed = text.replace('# exchange = "even-odd"', 'exchange = "none"')
    assert settings_from(tomllib.loads(changed), SweepSettings).dynamics.exchange == "none"
    assert '# which neighbours try to swap; one of "even-odd", "random-pairs", "none"\n' in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"run": {"roundz": 3}},
            r"unknown setting run\.roundz \(did you mean run\.rounds\?\); `tempernet init sweep`",
        ),
        ({"rounds": 3}, r"unknown setting rounds \(did you mean run\.rounds\?\)"),
        (
            {"ladder": {"rounds": 3}},
            r"unknown setting ladder\.rounds \(did you mean run\.rounds\?\)",
        ),
        # The nearest of those with the same last part.
        ({"tun": {"low": 0.5}}, r"unknown setting tun\.low \(did you mean tune\.low\?\)"),
        ({"lader": {"low": 0.5}}, r"unknown setting lader\.low \(did you mean ladder\.low\?\)"),
        ({"zzz": {}}, r"^unknown setting zzz; `tempernet"),
        ({"zzz": {"qqq": 1}}, r"^unknown setting zzz\.qqq; `tempernet"),
        ({"protocol": {"kind": "paper"}}, r"unknown setting protocol\.kind"),
        ({"run": 3}, r"run is a table of settings, got 3; write run\.<setting>=\.\.\."),
    ],
)
def test_what_is_unknown_is_refused_with_the_nearest_name(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_from(given, SweepSettings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"run": {"rounds": "many"}}, r"run\.rounds: input should be a valid integer, got 'many'"),
        ({"run": {"rounds": 3.0}}, r"run\.rounds: input should be a valid integer, got 3\.0"),
        ({"run": {"rounds": True}}, r"run\.rounds: input should be a valid integer, got True"),
        ({"run": {"rounds": 0}}, r"run\.rounds: input should be greater than or equal to 1, got 0"),
        ({"run": {"rounds": {"of": 3}}}, r"run\.rounds: input should be a valid integer"),
        ({"run": {"seed": -2}}, r"run\.seed: input should be greater than or equal to -1, got -2"),
        # Beyond, the generator would take the last 32 bits only.
        ({"run": {"seed": 2**32}}, r"run\.seed: input should be less than or equal to 4294967295"),
        ({"run": {"reproducible": 1}}, r"run\.reproducible: input should be true or false, got 1"),
        ({"ladder": {"num": 1}}, r"ladder\.num: input should be greater than or equal to 2, got 1"),
        (
            {"ladder": {"kind": "log"}},
            r"ladder\.kind: input should be 'adaptive', 'geometric' or 'listed', got 'log'",
        ),
        (
            {"ladder": {"temperatures": "1,2"}},
            r"ladder\.temperatures: input should be a list, such as \[0\.1, 1\.0\]",
        ),
        (
            {"ladder": {"temperatures": [1, "a"]}},
            r"ladder\.temperatures\.1: input should be a valid number, got 'a'",
        ),
        (
            {"ladder": {"temperatures": [1, True]}},
            r"ladder\.temperatures\.1: input should be a valid number, got True",
        ),
        ({"data": {"source": 3}}, r"data\.source: input should be a valid string, got 3"),
        ({"prior": {"factor": "5"}}, r"prior\.factor: input should be a valid number, got '5'"),
        ({"prior": {"factor": 0}}, r"prior\.factor: input should be greater than 0, got 0"),
        (
            {"prior": {"factor": math.inf}},
            r"prior\.factor: input should be a finite number, got inf",
        ),
        ({"protocol": "papr"}, r"protocol: input should be 'default' or 'paper', got 'papr'"),
        (
            {"protocol": ["paper"]},
            r"protocol: input should be 'default' or 'paper', got \['paper'\]",
        ),
    ],
)
def test_what_is_ill_typed_or_out_of_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        settings_from(given, SweepSettings)


FLOATS = [key for key, value in flat(SweepSettings()).items() if isinstance(value, float)]


@pytest.mark.parametrize("key", FLOATS)
def test_nan_is_refused_everywhere(key: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(key)}: input should be .*, got nan"):
        resolve(SweepSettings, assignments=[f"{key}=nan"])


def test_whole_numbers_will_do_for_fractions() -> None:
    settings = resolve(
        SweepSettings,
        assignments=["prior.factor=5", "dynamics.jitter=0", "ladder.high=7", "prior.std=2"],
    )
    assert (settings.prior.factor, settings.dynamics.jitter, settings.ladder.high) == (
        5.0,
        0.0,
        7.0,
    )
    assert all(isinstance(flat(settings)[key], float) for key in FLOATS)
    assert "factor = 5.0\n" in config.to_toml(settings)


CONTRADICTIONS = {
    "dynamics.kernel": "horowitz",
    "ladder.kind": "adaptive",
    "dynamics.walls": "reflect",
    "dynamics.jitter": 0.1,
    "dynamics.lengths": "distance",
    "dynamics.exchange": "even-odd",
    "dynamics.num_exchanges": 2,
    "dynamics.masses": "fan-in",
    "start.weights": "apart",
    "start.minimiser": "fire",
    "tune.low": 0.5,
    "tune.high": 0.8,
}


@pytest.mark.parametrize("key", CONTRADICTIONS)
def test_the_paper_cannot_be_contradicted(key: str) -> None:
    assignment = f"{key}={CONTRADICTIONS[key]}"
    with pytest.raises(
        ConfigError, match=rf"^{re.escape(key)} = .* contradicts the protocol 'paper', which has"
    ):
        resolve(SweepSettings, protocol="paper", assignments=[assignment])
    assert flat(resolve(SweepSettings, assignments=[assignment]))[key] == CONTRADICTIONS[key]


def test_every_value_that_the_paper_fixes_is_tried() -> None:
    assert set(CONTRADICTIONS) == {
        f"{t}.{name}" for t, values in SweepSettings.paper_fixes.items() for name in values
    }


def test_the_paper_may_be_repeated_and_what_it_leaves_open_chosen() -> None:
    said = ["ladder.kind=geometric", "dynamics.jitter=0", "ladder.num=8", "run.copies=2"]
    settings = resolve(SweepSettings, protocol="paper", assignments=said)
    assert (
        settings.ladder.num == 8 and settings.run.copies == 2 and settings.start.minimiser == "alg3"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b=gaussian", "gaussian"),
        ("a.b = gaussian ", "gaussian"),
        ('a.b="gaussian"', "gaussian"),
        ("a.b=3", 3),
        ("a.b=-3", -3),
        ("a.b=1_000", 1000),
        ("a.b=1e-3", 0.001),
        ("a.b=inf", math.inf),
        ("a.b=true", True),
        ("a.b=[0.1, 1, inf]", [0.1, 1, math.inf]),
        ("a.b=[]", []),
        ("a.b=", ""),
        ("a.b=x=y.npz", "x=y.npz"),
        ("a.b=/data/my set.npz", "/data/my set.npz"),
        ("a.b=64-32-5", "64-32-5"),
        # Layer sizes, not a day of the year 1024.
        ("a.b=1024-10-10", "1024-10-10"),
        ("a.b=[0.1, 1", "[0.1, 1"),
    ],
)
def test_values_of_set_are_toml_or_else_plain_words(text: str, value: object) -> None:
    parsed = parse_assignment(text)["a"]["b"]  # type: ignore[index]
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize("text", ["run.rounds", "=3", ".rounds=3", "run.=3", "run..rounds=3", ""])
def test_an_assignment_needs_a_key_and_a_value(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"--set needs key=value, such as --set ladder\.num=56, got"
    ):
        parse_assignment(text)


def test_assignments_reach_their_settings() -> None:
    assignments = [
        "network.name=1024-10-10",
        "ladder.kind=listed",
        "ladder.temperatures=[1, 2.5, inf]",
        "protocol=default",
    ]
    settings = resolve(SweepSettings, assignments=assignments)
    assert settings.network.name == "1024-10-10" and settings.ladder.temperatures == (
        1.0,
        2.5,
        math.inf,
    )


@pytest.mark.parametrize("given", [[1.0], [0.1, 1, 10], [1e-12, 1e12], [1, math.inf]])
def test_temperatures_may_be_listed(given: list[float]) -> None:
    settings = settings_from({"ladder": {"kind": "listed", "temperatures": given}}, SweepSettings)
    assert settings.ladder.temperatures == tuple(given)


@pytest.mark.parametrize(
    "given",
    [
        [0.0, 1.0],
        [-1.0, 1.0],
        [2.0, 1.0],
        [1.0, 1.0],
        [1.0, math.nan],
        [math.nan],
        [math.inf, math.inf],
    ],
)
def test_listed_temperatures_must_be_increasing_and_positive(given: list[float]) -> None:
    with pytest.raises(
        ConfigError, match=r"ladder\.temperatures must be increasing and positive, got \["
    ):
        settings_from({"ladder": {"kind": "listed", "temperatures": given}}, SweepSettings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"ladder": {"kind": "listed"}},
            r'ladder\.kind = "listed" needs ladder\.temperatures, such as \[0\.1',
        ),
        (
            {"ladder": {"temperatures": [1, 2]}},
            r'ladder\.temperatures are for ladder\.kind = "listed", got .*adaptive',
        ),
        (
            {"ladder": {"low": 5, "high": 5}},
            r"ladder\.low must be below ladder\.high, got 5\.0 and 5\.0",
        ),
        ({"tune": {"low": 0.9}}, r"tune\.low must be below tune\.high, got 0\.9 and 0\.7"),
        (
            {"run": {"reproducible": True, "data_devices": 2}},
            r"run\.reproducible needs run\.data_devices = 1, got 2",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_from(given, SweepSettings)


def test_an_unknown_preset_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        ConfigError,
        match=r"unknown preset 'quik' \(did you mean quick\?\); there are quick, paper-d50",
    ):
        resolve(SweepSettings, preset="quik")
    with pytest.raises(ConfigError, match=r"unknown preset 'zzzzzz'; there are quick"):
        resolve(SweepSettings, preset="zzzzzz")


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the settings .*absent\.toml: No such file"):
        resolve(SweepSettings, file=tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        resolve(SweepSettings, file=tmp_path)
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="it is not text"):
        resolve(SweepSettings, file=path)
    path.write_text("[run]\nrounds == 3\n")
    with pytest.raises(ConfigError, match=r"mine\.toml is not valid TOML: .*line 2"):
        resolve(SweepSettings, file=path)
    path.write_bytes(b"\xef\xbb\xbf[run]\nrounds = 3\n")
    assert resolve(SweepSettings, file=path).run.rounds == 3


def test_differences_are_listed_by_name() -> None:
    new = resolve(SweepSettings, assignments=["run.rounds=7", "ladder.kind=geometric"])
    assert differences(SweepSettings(), new) == [
        "run.rounds: 200 -> 7",
        "ladder.kind: adaptive -> geometric",
    ]
    assert differences(new, new) == []


def test_rungs_below_the_posterior_are_for_paths_by_temperature() -> None:
    assert config.resolve(EvidenceSettings, assignments=["path.coldest=0.5"]).path.coldest == 0.5
    for wrong in (
        ["path.method=bridge", "path.coldest=0.5"],
        ["path.coldest=1.5"],
        ["path.coldest=0"],
    ):
        with pytest.raises(ConfigError, match="coldest"):
            config.resolve(EvidenceSettings, assignments=wrong)
