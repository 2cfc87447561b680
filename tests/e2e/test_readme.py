"""The README's lines of Python run as they stand, on fewer images and for fewer rounds."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tempernet as tn

README = Path(__file__).resolve().parents[2] / "README.md"
SHORTER = {
    "tn.configure(devices=2)\n": "",
    "n_train=500, n_validation=2000": "n_train=50, n_validation=100",
    "rounds=20, burn_in=20": "rounds=2, burn_in=2",
    "test=data.test)": "test=data.validation, **short)",
}
"""What the README says -> what takes seconds."""

pytestmark = pytest.mark.usefixtures("quick_programs")


def test_ten_lines_run_and_print_a_row_a_temperature(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.search(r"```python\n(import tempernet as tn\n.*?)```", README.read_text(), re.DOTALL)
    assert block is not None
    code = block[1]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    for old, new in SHORTER.items():
        assert old in code, old
        code = code.replace(old, new)
    short = {
        "score_every": 1,
        "copies": 2,
        "dynamics": tn.Dynamics(num_steps=5, num_trajectories=1),
        "minimiser": tn.Minimiser(max_gradients=20),
        "tile": 7,
        "devices": 2,
    }
    names: dict[str, Any] = {"short": short}
    exec(compile(code, str(README), "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("256-40-40-40-10 on 50 ")
    # Below the title and the headings.
    rows = [line.split() for line in lines[2 : 2 + len(names["ladder"])]]
    assert [float(row[0]) for row in rows] == names["ladder"]
    assert any(line.startswith("verdict:") for line in lines), lines
    assert names["probabilities"].shape == (5, 10)
    np.testing.assert_allclose(names["probabilities"].sum(axis=1), 1, rtol=1e-5)
