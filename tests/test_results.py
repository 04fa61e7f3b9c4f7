"""Result files: what goes in comes out, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabsim.results
from fabsim.collect import collect, watched_links
from fabsim.errors import InputError
from fabsim.results import COLUMNS, Result, read, write
from fabsim.store import Sheet, Variable, encode, publish


def test_every_column_comes_back(result: Result, tmp_path: Path) -> None:
    write(result, tmp_path / "r.h5")
    (again,) = read(tmp_path / "r.h5")
    for item in COLUMNS:
        np.testing.assert_array_equal(getattr(again, item.name), getattr(result, item.name), err_msg=item.name)
    assert (again.name, again.seed, again.scenario) == (result.name, result.seed, result.scenario)
    assert again.versions == result.versions
    assert (again.dt, again.steps, again.sharing) == (result.dt, result.steps, result.sharing)


def test_xarray_sees_units_names_and_the_scenario(result: Result, tmp_path: Path) -> None:
    write(result, tmp_path / "r.h5")
    data = fabsim.open(tmp_path / "r.h5")
    sizes = {"flow": 3, "traffic": 1, "link": 16, "group": 0, "classes": 1, "time": 4, "watched": 6}
    assert dict(data.sizes) == sizes
    assert data.completion.attrs["units"] == "s"
    assert data.queue_peak.sel(link="leaf1->h2").item() == result.queue_peak.max()
    assert data.series_queue.sel(watched="leaf1->h2").dims == ("time",)
    assert data.scenario.item() == result.scenario
    assert data.attrs["seed"] == 7
    assert data.time.dtype == np.float64  # not turned into dates


def test_cases_stand_in_one_dataset(result: Result, other_case: Result, tmp_path: Path) -> None:
    write([result, other_case], tmp_path / "r.h5")
    assert [run.name for run in read(tmp_path / "r.h5")] == ["ECMP", "spray"]
    data = fabsim.open(tmp_path / "r.h5")
    assert data.completion.dims == ("case", "flow")
    np.testing.assert_array_equal(data.completion.sel(case="spray"), other_case.completion)
    one = fabsim.open(tmp_path / "r.h5", case="spray")
    np.testing.assert_array_equal(one.completion, other_case.completion)
    with pytest.raises(InputError, match='no case is named "sprai"; there are ECMP, spray'):
        fabsim.open(tmp_path / "r.h5", case="sprai")


def test_figures_of_links_follow_from_the_frames(result: Result) -> None:
    down = list(result.link).index("leaf1->h2")
    assert result.sent[down] == 3e6
    assert result.utilisation[down] == pytest.approx(3e6 / (50e9 * result.last))
    assert result.queue_mean[down] == pytest.approx(
        result.series_queue[:, list(result.watched).index("leaf1->h2")].mean()
    )
    dead = list(result.link).index("leaf0->spine1")
    assert result.capacity[dead] == 0
    assert result.utilisation[dead] == 0
    assert result.total_sent.sum() == 3e6
    np.testing.assert_allclose(result.mean_rate, result.size / result.duration)


def test_watched_links_by_name_and_all(parts: dict[str, Any], tmp_path: Path) -> None:
    fabric = parts["fabric"]
    named = collect(**parts, name="x", watch=watched_links(["leaf0->*", "leaf1->h2"], fabric))
    assert set(named.watched) == {"leaf0->h0", "leaf0->h1", "leaf0->spine0", "leaf0->spine1", "leaf1->h2"}
    assert len(collect(**parts, name="x", watch=watched_links("all", fabric)).watched) == 16
    assert collect(**parts, name="x", watch=watched_links("leaf1->h2", fabric)).watched == ["leaf1->h2"]
    assert len(collect(**parts, name="x", watch=watched_links(np.int64(3), fabric)).watched) == 3
    np.testing.assert_array_equal(watched_links(np.array([5, 2, 5]), fabric), [2, 5])
    assert len(collect(**parts, name="x", watch=watched_links([], fabric)).watched) == 0
    wrong: list[tuple[Any, str]] = [
        ("leaf9->h2", '"leaf9->h2"'), (["leaf9->h2"], "leaf9"), (-1, "watch: -1 given; 0 or more"),
        ([16], "watch: 16 is no link; names, or numbers from 0 to 15"), ([1.5], "watch: 1.5 is no link"),
        (None, "watch: None given; how many"),
    ]  # fmt: skip
    for watch, told in wrong:
        with pytest.raises(InputError, match=told):
            watched_links(watch, fabric)


def test_links_to_watch_are_known_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is not there costs no run."""
    scenario = fabsim.load(Path(__file__).parents[1] / "configs" / "incast.yaml")
    monkeypatch.setattr("fabsim.engine.run.run", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(InputError, match='named "leaf77->h0"'):
        fabsim.run(scenario, watch="leaf77->h0", progress=False)


def test_an_existing_file_is_not_replaced_unless_forced(result: Result, other_case: Result, tmp_path: Path) -> None:
    path = tmp_path / "r.h5"
    write(result, path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists already; give --force"):
        write(other_case, path)
    assert path.read_bytes() == before
    write(other_case, path, force=True)
    assert read(path)[0].name == "spray"


@pytest.mark.parametrize("place", ["missing/r.h5", "."])
def test_a_place_that_cannot_be_is_named(result: Result, tmp_path: Path, place: str) -> None:
    with pytest.raises(InputError, match=r"there is no folder|is a folder"):
        write(result, tmp_path / place)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "r.h5", b"old")

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        publish(tmp_path / "r.h5", b"new", force=True)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("r.h5", b"old")]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")
def test_a_full_disk_is_a_clean_error(tmp_path: Path) -> None:
    program = """if True:
        import resource, sys
        import numpy as np
        from fabsim.store import Sheet, Variable, encode, publish
        noise = np.random.default_rng(0).random(100_000)
        image = encode({"": Sheet({"x": Variable(("i",), noise)})})
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            publish(sys.argv[1], image, force=True)
        except OSError as error:
            print("refused:", error.strerror)
    """
    path = tmp_path / "r.h5"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "refused: File too large"), done.stderr
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("r.h5", b"old")]


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    publish(tmp_path / "alias", b"new", force=True)
    assert (tmp_path / "alias").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_only_plain_types_are_stored() -> None:
    with pytest.raises(TypeError, match="float16 is not stored"):
        encode({"": Sheet({"x": Variable(("i",), np.zeros(3, dtype=np.float16))})})


def test_a_long_scenario_and_an_empty_table_are_stored(parts: dict[str, Any], tmp_path: Path) -> None:
    text = "é" * 200_000  # longer than an attribute may be
    write(collect(**parts, name="x", scenario=text, watch=0), tmp_path / "r.h5")
    (again,) = read(tmp_path / "r.h5")
    assert again.scenario == text
    assert again.series_queue.shape == (4, 0)


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.h5").write_text("hello")
    publish(tmp_path / "other.h5", encode({"": Sheet({"x": Variable(("i",), np.zeros(3))})}))
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "absent.h5")
    for read_it in (read, fabsim.open):
        with pytest.raises(InputError, match="not a result file"):
            read_it(tmp_path / "text.h5")
    with pytest.raises(InputError, match="not a result file of this version"):
        read(tmp_path / "other.h5")
