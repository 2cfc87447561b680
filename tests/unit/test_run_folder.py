"""The run folder: begun once, opened by its id, one writer at a time."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from disk import begun, row

from tempernet.config import SweepSettings
from tempernet.errors import StoreError
from tempernet.store import Checkpoints, RunFolder, files
from tempernet.store.folder import CONFIG, LOCK, LOG, PROVENANCE, STATUS, is_run


def test_a_file_of_another_run_is_named(tmp_path: Path) -> None:
    one, two = begun(tmp_path / "one"), begun(tmp_path / "two")
    assert one.run != two.run and RunFolder(one.path).run == one.run
    for folder in (one, two):
        folder.write_json(STATUS, {"done": 1})
        records = folder.records
        records.append("rounds", row(0))
        records.flush()
        folder.checkpoints.save({"x": np.zeros(1)}, {"round": 1})
        folder.unlock()
    for name in (
        STATUS,
        CONFIG,
        "rounds/manifest.json",
        "checkpoints/00000000.npz",
        "checkpoints/00000000.sha256",
    ):
        (one.path / name).write_bytes((two.path / name).read_bytes())
    message = f"belongs to another run: it carries the id {two.run}, "
    message += f"and the provenance.json beside it {one.run}"
    with pytest.raises(StoreError, match=rf"status\.json {message}"):
        one.read_json(STATUS)
    with pytest.raises(StoreError, match=rf"config\.toml {message}"):
        one.settings(SweepSettings)
    with pytest.raises(StoreError, match=rf"manifest\.json {message}"):
        _ = one.records
    found, complaints = one.checkpoints.latest()
    assert found is None and message in complaints[0]


def test_a_run_from_before_there_were_ids_is_read_and_goes_on(tmp_path: Path) -> None:
    files.write_json(tmp_path / PROVENANCE, {"seed": 1})
    folder = RunFolder(tmp_path)
    assert folder.run is None
    folder.write_settings(SweepSettings())
    folder.write_json(PROVENANCE, folder.read_json(PROVENANCE))
    folder.checkpoints.save({"x": np.zeros(1)}, {"round": 1})
    found, complaints = RunFolder(tmp_path).checkpoints.latest()
    assert found is not None and complaints == [] and RunFolder(tmp_path).outdated(found) == []
    assert (
        RunFolder(tmp_path).settings(SweepSettings) == SweepSettings()
        and RunFolder(tmp_path).run is None
    )


def test_a_vanished_folder_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"cannot make the folder .*gone/checkpoints: No such file"
    ):
        Checkpoints(tmp_path / "gone" / "checkpoints").save({"x": np.zeros(1)}, {})
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("left", [CONFIG + ".part", PROVENANCE + ".part", PROVENANCE, LOCK])
def test_a_run_that_was_killed_before_it_had_begun_can_be_begun_again(
    tmp_path: Path, left: str
) -> None:
    files.write_json(tmp_path / left, {"run": "00"})
    RunFolder.create(tmp_path).unlock()
    (tmp_path / CONFIG).write_text("mine")
    with pytest.raises(StoreError, match="not empty"):
        RunFolder.create(tmp_path)


def test_a_new_folder_is_made_with_those_above_it_and_locked(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a" / "run")
    assert [file.name for file in folder.path.iterdir()] == [LOCK] and not is_run(folder.path)
    with pytest.raises(StoreError, match="another process is writing"):
        RunFolder.create(folder.path)
    folder.unlock()
    folder.unlock()
    # What failed before it wrote anything can be tried again.
    RunFolder.create(folder.path).unlock()


def test_a_folder_that_cannot_be_used_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"full is not empty; choose another with --out"):
        RunFolder.create(tmp_path / "full")
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["thesis.txt"]
    for path in (tmp_path / "full" / "thesis.txt", tmp_path / "full" / "thesis.txt" / "run"):
        with pytest.raises(StoreError, match=r"Not a directory; choose another with --out"):
            RunFolder.create(path)
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


def test_only_a_run_can_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no run at .*absent: no such folder"):
        RunFolder.open(tmp_path / "absent")
    with pytest.raises(
        StoreError, match=r"is no run folder: it has no config\.toml with a provenance\.json"
    ):
        RunFolder.open(tmp_path)
    begun(tmp_path / "run").unlock()
    before = sorted((file.name, file.stat().st_mtime_ns) for file in (tmp_path / "run").iterdir())
    folder = RunFolder.open(tmp_path / "run")
    assert folder.records.load("rounds") == {} and folder.weights.length("weights") == 0
    assert folder.checkpoints.latest() == (None, [])
    assert folder.read_json(PROVENANCE) == {"seed": 1, "run": folder.run, "revision": 1}
    assert (
        sorted((file.name, file.stat().st_mtime_ns) for file in (tmp_path / "run").iterdir())
        == before
    )


def test_lines_are_logged_with_the_time_and_sizes_are_counted(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    size = folder.size()
    assert size == sum(len((folder.path / name).read_bytes()) for name in (CONFIG, PROVENANCE))
    folder.log.append("one")
    folder.log.append("zwei äöü\nand more")
    lines = (folder.path / LOG).read_text(encoding="utf-8").splitlines()
    assert [line.split(" ", 2)[2].rpartition(" [")[0] for line in lines] == [
        "one",
        "zwei äöü and more",
    ]
    folder.records.append("rounds", row(0))
    (folder.path / "rounds").mkdir()
    (folder.path / "rounds" / "x").write_bytes(bytes(1000))
    assert folder.size() == size + 1000 + (folder.path / LOG).stat().st_size
    (folder.path / "dangling").symlink_to(folder.path / "nowhere")
    assert folder.size() > size
    folder.write_json(STATUS, {"done": np.int64(3)})
    assert folder.read_json(STATUS) == {"done": 3, "run": folder.run}
    folder.unlock()


HOLDER = """
import sys, time
from pathlib import Path
from tempernet.store.folder import RunFolder
folder = RunFolder(Path(sys.argv[1]))
folder.lock()
print("locked", flush=True)
time.sleep(60)
"""


def test_a_second_process_cannot_write_until_the_first_has_died(tmp_path: Path) -> None:
    begun(tmp_path).unlock()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        folder = RunFolder.open(tmp_path)
        for _ in range(2):
            with pytest.raises(
                StoreError, match=r"another process is writing to .*; wait for it or stop it first"
            ):
                folder.lock()
        assert folder.is_being_written
        # Reading is free.
        assert folder.read_json(PROVENANCE)["seed"] == 1
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert not folder.is_being_written
    folder.lock()
    with pytest.raises(StoreError, match="another process"):
        RunFolder.open(tmp_path).lock()
    folder.unlock()
    assert not folder.is_being_written and not RunFolder(tmp_path / "absent").is_being_written


def test_a_look_at_the_lock_does_not_keep_a_writer_out(tmp_path: Path) -> None:
    import fcntl

    begun(tmp_path).unlock()
    with (tmp_path / LOCK).open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.15, lambda: fcntl.flock(looking, fcntl.LOCK_UN)).start()
        folder = RunFolder.open(tmp_path)
        folder.lock()
        folder.unlock()


def test_a_lock_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot write to .*absent: No such file"):
        RunFolder(tmp_path / "absent").lock()


def test_settings_that_were_changed_are_refused(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    settings = SweepSettings.model_validate({"run": {"seed": 3}})
    folder.write_settings(settings)
    assert folder.settings(SweepSettings) == settings
    path = folder.path / CONFIG
    path.write_text(path.read_text().replace("seed = 3", "seed = 4"))
    with pytest.raises(StoreError, match="was changed"):
        folder.settings(SweepSettings)
    folder.unlock()


def test_the_parts_of_a_folder_are_kept_and_a_reader_sees_what_a_writer_adds(
    tmp_path: Path,
) -> None:
    writer, reader = begun(tmp_path), RunFolder.open(tmp_path)
    assert reader.records is reader.records and reader.checkpoints is reader.checkpoints
    assert reader.records.length("rounds") == 0 and reader.records.series == []
    for done in (1, 2):
        writer.records.append("rounds", row(done))
        writer.records.flush()
        assert reader.records.length("rounds") == done and reader.records.series == ["rounds"]
        assert list(reader.records.load("rounds")) == list(row(0))
    writer.records.truncate({"rounds": 1})
    assert reader.records.length("rounds") == 1 and reader.records.verify() == []
    writer.unlock()


def test_a_checkpoint_has_the_revisions_of_its_own_time(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    checkpoints = folder.checkpoints
    before = dict(checkpoints.revisions)
    folder.write_json(PROVENANCE, {"seed": 1})
    checkpoints.save({"x": np.zeros(1)}, {"round": 1})
    found, _ = checkpoints.latest()
    assert found is not None
    assert found.meta["revisions"][PROVENANCE] == before[PROVENANCE] + 1
    folder.unlock()


def test_who_has_the_lock_again_reads_what_another_wrote_meanwhile(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.records.append("rounds", row(0))
    first.records.flush()
    first.unlock()
    second = RunFolder.open(tmp_path)
    second.lock()
    second.records.append("rounds", row(1))
    second.records.flush()
    second.unlock()
    first.lock()
    first.records.append("rounds", row(2))
    first.records.flush()
    assert first.records.length("rounds") == second.records.length("rounds") == 3
    first.unlock()
