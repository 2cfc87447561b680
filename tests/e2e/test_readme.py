"""The README's ten lines run as they stand, on fewer images and for fewer rounds."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def test_ten_lines_run_and_print_a_line_a_temperature(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.search(r"```python\n(import tempernet as tn\n.*?)```", README.read_text(), re.DOTALL)
    assert block is not None
    code = block[1]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    for old, new in (
        ("n_train=500", "n_train=50"),
        ("rounds=20, burn_in=20", "rounds=2, burn_in=2, score_every=1"),
    ):
        assert old in code
        code = code.replace(old, new)
    code = code.replace(
        "test=data.test",
        "test=data.validation, dynamics=tn.Dynamics(5, 1), tile=7, devices=2, tuning=tn.Tuning(.6, .7, 1, 1, 1)",
    ).replace("n_train=50)", "n_train=50, n_validation=100)")
    exec(compile(code, str(README), "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert all(
        re.match(r"T = +[\d.]+   train [\d.]+ ± [\d.]+   test [\d.]+ ± [\d.]+", line)
        for line in lines
    ), lines
