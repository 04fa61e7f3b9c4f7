"""The packet table: what the fluid model must reach against measured completions."""

from __future__ import annotations

import csv
import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest

from fabsim import validation
from fabsim.validation import COLUMNS, Row

DATA = Path(__file__).parent / "data" / "packets"
SINGLE = ["nscc", "4096", "65536", "262144", "1000000", "8000000", "64000000"]


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    """The table of all measured cases."""
    return {row.case: row for row in validation.validate(DATA, progress=False)}


def mean_error(row: Row) -> float:
    """Of the mean completion, as a fraction."""
    return row.fluid_mean_us / row.packet_mean_us - 1


def last_error(row: Row) -> float:
    """Of the last completion, as a fraction."""
    return row.fluid_max_us / row.packet_max_us - 1


def of_kind(rows: dict[str, Row], kind: str) -> list[Row]:
    """Rows of many flows."""
    return [row for row in rows.values() if row.kind == kind and row.flows > 1]


@pytest.mark.parametrize("case", [*(f"one_ft128_400_{size}" for size in SINGLE), "one_ls128_400_nscc"])
def test_a_single_flow_of_any_size(rows: dict[str, Row], case: str) -> None:
    assert rows[case].err_p90 <= 0.005


@pytest.mark.parametrize("fabric", ["ls128", "ft128"])
def test_ecmp_flow_by_flow(rows: dict[str, Row], fabric: str) -> None:
    row = rows[f"perm_{fabric}_400_ecmp_const"]
    assert row.kind == "paths"
    assert row.err_median <= 0.02
    assert row.err_p90 <= 0.05
    assert abs(last_error(row)) <= 0.05


def test_given_paths_in_the_median_row(rows: dict[str, Row]) -> None:
    given = of_kind(rows, "paths")
    assert len(given) == 13
    assert np.median([row.err_median for row in given]) <= 0.03
    assert np.median([row.err_p90 for row in given]) <= 0.10


def test_given_paths_in_the_worst_row(rows: dict[str, Row]) -> None:
    for row in of_kind(rows, "paths"):
        assert not row.note
        assert row.err_p90 < row.null_p90, row.case
        assert row.err_median <= 0.06, row.case
        assert row.err_p90 <= 0.15, row.case
        assert abs(last_error(row)) <= 0.08, row.case
        assert row.spread_ratio == pytest.approx(1, abs=0.05) or row.case == "perm16MB_ft128_400_obl_nscc", row.case
        assert abs(mean_error(row)) <= 0.02, row.case


def test_a_long_spray_has_flows_with_small_windows_for_long(rows: dict[str, Row]) -> None:
    """Those over bad paths: one of 128 ends 12 % after all others, with packets and here (see Nscc)."""
    row = rows["perm16MB_ft128_400_obl_nscc"]
    assert row.packet_max_us > 1.10 * row.packet_p99_us
    assert row.fluid_max_us > 1.2 * row.fluid_mean_us
    assert last_error(row) == pytest.approx(-0.026, abs=0.02)
    assert row.err_median <= 0.012
    assert row.err_p90 <= 0.035
    assert row.spread_ratio == pytest.approx(0.92, abs=0.06)


def test_drawn_sprays_in_the_median_row(rows: dict[str, Row]) -> None:
    drawn = [row for row in of_kind(rows, "drawn") if row.case.startswith("perm")]
    assert len(drawn) == 19
    assert np.median([abs(mean_error(row)) for row in drawn]) <= 0.03
    assert np.median([abs(last_error(row)) for row in drawn]) <= 0.05
    for quantile in ("p1_error", "p50_error", "p99_error"):
        assert np.median([abs(getattr(row, quantile)) for row in drawn]) <= 0.05, quantile
    assert 0.75 <= np.median([row.spread_ratio for row in drawn]) <= 1.25


@pytest.mark.parametrize(
    "case",
    [
        *("obl_const", "obl_nscc", "swrr_nscc", "swar_nscc", "fail4_swar_nscc"),
        *("reps_nscc", "bitmap_nscc", "mixed_nscc", "fail1_reps_nscc", "fail1_mixed_nscc", "fail4_bitmap_nscc"),
        "os4_mixed_rccc",
    ],
)
def test_a_spray_over_two_tiers(rows: dict[str, Row], case: str) -> None:
    row = rows[f"perm_ls128_400_{case}"]
    assert row.kind == "drawn"
    assert abs(mean_error(row)) <= 0.03
    assert abs(last_error(row)) <= 0.05
    assert 0.75 <= row.spread_ratio <= 1.25


def test_reps_over_four_slow_spines_is_5_percent_late(rows: dict[str, Row]) -> None:
    """Without ports that feel its random packets it would be right here, and 3 % early in all other rows."""
    row = rows["perm_ls128_400_fail4_reps_nscc"]
    assert last_error(row) == pytest.approx(0.05, abs=0.015)
    assert mean_error(row) == pytest.approx(0.03, abs=0.01)
    assert row.spread_ratio == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("case", "error"), [("fail1_bitmap", 0.044), ("fail4_mixed", 0.050)])
def test_the_last_over_slow_spines_is_late_under_balancers(rows: dict[str, Row], case: str, error: float) -> None:
    """Bad values come back about when they would with packets, and some of them at worse times."""
    row = rows[f"perm_ls128_400_{case}_nscc"]
    assert last_error(row) == pytest.approx(error, abs=0.015)
    assert abs(mean_error(row)) <= 0.03
    assert row.spread_ratio == pytest.approx(1.17, abs=0.05)


def test_balancers_come_out_in_the_order_of_the_packets(rows: dict[str, Row]) -> None:
    """Any two whose last completions differ by more than 5 %."""
    for fabric in ("", "fail1_", "fail4_"):
        names = [f"perm_ls128_400_{fabric}{law}_nscc" for law in ("obl", "reps", "bitmap", "mixed", "swar")]
        found = [rows[name] for name in names if name in rows]
        for one in found:
            for other in found:
                if one.packet_max_us > 1.05 * other.packet_max_us:
                    assert one.fluid_max_us > other.fluid_max_us, (one.case, other.case)


def test_the_last_of_the_fat_tree_is_4_percent_early_by_the_draw_and_not_by_the_dynamics(rows: dict[str, Row]) -> None:
    """With the split that the packets took it is right. The packets themselves end at 58.9 us with one seed and 56.2 us
    with another."""
    assert abs(last_error(rows["perm_ft128_400_obl_const"])) <= 0.05
    assert abs(mean_error(rows["perm_ft128_400_obl_const"])) <= 0.03
    control = rows["perm_ft128_400_obl_const_split"]
    assert control.kind == "paths"
    assert abs(last_error(control)) <= 0.01
    assert control.err_p90 <= 0.03


def test_the_last_of_the_oversubscribed_fat_tree_is_5_percent_early(rows: dict[str, Row]) -> None:
    """Again a draw, over two thin tiers; and the packets' unfairness under NSCC hits the last flow most."""
    row = rows["perm_ft128_400_os4_obl_nscc"]
    assert last_error(row) == pytest.approx(-0.048, abs=0.01)
    assert abs(mean_error(row)) <= 0.03


def test_a_spray_that_does_not_listen_over_a_slow_spine(rows: dict[str, Row]) -> None:
    """What is trimmed there is sent again packet by packet, and few of these take the slow spine once more."""
    row = rows["perm_ls128_400_fail1_obl_nscc"]
    assert abs(mean_error(row)) <= 0.03
    assert abs(last_error(row)) <= 0.02
    assert row.spread_ratio == pytest.approx(1, abs=0.05)


def test_an_all_to_all_of_flows_that_follow_each_other(rows: dict[str, Row]) -> None:
    """Each of 16 hosts sends 2 MB to one after the other: 15 rounds that drift apart."""
    row = rows["a2a16serial_ls16_400_mixed_nscc"]
    assert row.fluid_last_us == pytest.approx(row.packet_last_us, rel=0.02)
    assert row.packet_last_us > 10 * row.packet_max_us
    assert abs(mean_error(row)) <= 0.02
    assert abs(last_error(row)) <= 0.04


def test_the_table_by_family(rows: dict[str, Row]) -> None:
    text = validation.by_family(list(rows.values()))
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    lone = [row for row in rows.values() if row.flows == 1 and row.family == "a lone flow"]
    assert f" {len(lone)}    0.0%   0.0%" in lines["a lone flow"]
    worst = max(abs(mean_error(row)) for row in rows.values() if row.family == "NSCC, measured paths")
    assert f"{worst:.1%}" in lines["NSCC, measured paths"]
    assert "end in the packets' order" in text
    assert max(len(line) for line in text.splitlines()) <= 120


@pytest.mark.parametrize(
    "case", [f"incast{n}_{fabric}_400_mixed_const" for n in (8, 32) for fabric in ("ls128", "ft128")]
)
def test_an_incast_of_fixed_windows(rows: dict[str, Row], case: str) -> None:
    assert abs(last_error(rows[case])) <= 0.02
    assert abs(mean_error(rows[case])) <= 0.06


@pytest.mark.parametrize("senders", [8, 32, 100])
def test_an_incast_under_nscc(rows: dict[str, Row], senders: int) -> None:
    """Chance of whole packets gives equal flows different windows. The early finishers leave small windows behind."""
    row = rows[f"incast{senders}_ls128_400_mixed_nscc"]
    assert abs(mean_error(row)) <= 0.06
    assert row.spread_ratio == pytest.approx(1, abs=0.2)  # of 100 senders 0.82 to 1.00, by roundings
    assert row.err_p90 < row.null_p90
    assert abs(last_error(row)) <= 0.02 or senders == 8


def test_the_last_of_eight_senders_is_4_percent_late_as_it_may_be_with_packets(rows: dict[str, Row]) -> None:
    """A matter of luck: from one seed of the fluid to another the last of eight takes 167 to 183 us."""
    assert last_error(rows["incast8_ls128_400_mixed_nscc"]) == pytest.approx(0.042, abs=0.015)


@pytest.mark.parametrize(("senders", "error"), [(8, -0.13), (32, -0.11), (100, 0.02)])
def test_senders_below_the_leaf_of_the_receiver(rows: dict[str, Row], senders: int, error: float) -> None:
    """They are the first in the queue, and leave it first; in the well-mixed queue of the fluid their bytes stay longer
    and count for the next window."""
    ours, packets = re.findall(
        r"leaf: mean ([\d.]+) us, packets ([\d.]+)", rows[f"incast{senders}_ls128_400_mixed_nscc"].note
    )[0]
    assert float(ours) / float(packets) - 1 == pytest.approx(error, abs=0.05)


@pytest.mark.parametrize("case", ["8_ft128", "32_ls128", "100_ls128"])
def test_an_incast_under_receiver_credit(rows: dict[str, Row], case: str) -> None:
    row = rows[f"incast{case}_400_mixed_rccc"]
    assert abs(last_error(row)) <= 0.005
    assert abs(mean_error(row)) <= 0.035


def test_an_incast_over_pauses(rows: dict[str, Row]) -> None:
    """Pauses share a port by links, not by flows: the few near senders are done long before the many far ones."""
    row = rows["roce_pfc_incast32_ft128_400_ecmp"]
    assert abs(mean_error(row)) <= 0.08
    assert abs(last_error(row)) <= 0.06
    assert row.spread_ratio == pytest.approx(1, abs=0.05)


def test_the_last_of_a_permutation_over_pauses_is_7_percent_early(rows: dict[str, Row]) -> None:
    """Its paths were not measured: the fullest link of a draw has 4 flows (172 us), or 5 (212 us), and the packets
    ended at 194 us. On the same paths fluid and packets agree within 1 % (see test_lossless)."""
    row = rows["roce_pfc_perm_ft128_400_ecmp"]
    assert abs(mean_error(row)) <= 0.04
    assert last_error(row) == pytest.approx(-0.07, abs=0.015)
    assert row.err_median <= 0.08
    assert row.spread_ratio == pytest.approx(0.90, abs=0.05)


def test_a_lone_flow_between_sites(rows: dict[str, Row]) -> None:
    assert rows["lh_one_64MB_mixed_nscc"].err_p90 <= 1e-6


def test_single_paths_between_sites(rows: dict[str, Row]) -> None:
    """What comes back comes too late to matter: queues and trims alone, and those are exact."""
    row = rows["lh_perm64_16MB_ecmp_nscc"]
    assert row.err_p90 <= 0.002
    assert abs(last_error(row)) <= 0.001


@pytest.mark.parametrize("law", ["nscc", "rccc"])
def test_sprays_between_sites(rows: dict[str, Row], law: str) -> None:
    row = rows[f"lh_perm64_16MB_mixed_{law}"]
    assert abs(mean_error(row)) <= 0.03
    assert abs(last_error(row)) <= 0.05
    assert 0.75 <= row.spread_ratio <= 1.25


@pytest.mark.parametrize("case", ["ecmp", "mixed"])
def test_near_and_far_senders_of_one_incast(rows: dict[str, Row], case: str) -> None:
    """The far ones bring a window of a millisecond at once, and finish first."""
    row = rows[f"lh_incast_4near_4far_{case}_nscc"]
    assert row.err_median <= 0.02
    assert row.err_p90 <= 0.03
    assert abs(last_error(row)) <= 0.005


def test_as_many_packets_are_trimmed_as_were(rows: dict[str, Row]) -> None:
    """Within 5 %, but for a long spray, slow spines, receiver credit, sites, and where each switch chooses."""
    with (DATA / "summary.csv").open(newline="") as file:
        trimmed = {row["name"]: float(row["trims"] or 0) for row in csv.DictReader(file)}
    ratio = {
        "perm_ft128_400_swrr_nscc": 0.28,  # shares bring in a stream what turns bring in bursts
        "perm16MB_ft128_400_obl_nscc": 0.91,
        "perm_ls128_400_fail4_swar_nscc": 0.0,
        "perm_ls128_400_fail1_obl_nscc": 1.07,
        "perm_ls128_400_fail4_bitmap_nscc": 1.08,
        "perm_ls128_400_fail4_reps_nscc": 1.07,
        "incast8_ft128_400_mixed_rccc": 0.91,
        "incast32_ls128_400_mixed_rccc": 0.93,
        "incast100_ls128_400_mixed_rccc": 0.92,
        "perm_ls128_400_os4_mixed_rccc": 1.06,
        "lh_incast_4near_4far_mixed_nscc": 0.94,
        # All is sent before anything is heard: one draw of paths in the packets' two runs, 468 and 177 of 250,000.
        "lh_perm64_16MB_mixed_nscc": 0.86,
        "lh_perm64_16MB_mixed_rccc": 2.26,
    }
    for case, row in rows.items():
        if row.kind in ("paths", "drawn"):
            allowed = (0.02 if case in ratio else 0.05) * trimmed[case]
            rare = 1e-4 * row.flows * 490  # packets of 2 MB
            assert row.drops == pytest.approx(ratio.get(case, 1) * trimmed[case], abs=max(allowed, rare)), case


def test_what_cannot_be_run_is_listed_with_its_reason(rows: dict[str, Row]) -> None:
    undone = {row.case: row for row in rows.values() if not row.kind}
    assert {case: row.note for case, row in undone.items()} == {
        "roce_dcqcn_incast8_ft128_400_ecmp": "the packet simulator did not finish (rc 124)",
    }
    assert all(math.isnan(row.fluid_mean_us) for row in undone.values())
    text = validation.as_text(list(rows.values()))
    assert "not run: roce_dcqcn_incast8_ft128_400_ecmp: the packet simulator did not finish (rc 124)" in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_quantiles_are_those_of_the_completions(rows: dict[str, Row]) -> None:
    for row in rows.values():
        if row.kind:
            assert row.p99_error == pytest.approx(row.fluid_p99_us / row.packet_p99_us - 1, abs=1e-9)
        if row.flows == 1:
            assert row.p1_error == row.p50_error == row.p99_error == pytest.approx(mean_error(row), abs=1e-9)


def test_the_table_as_csv(rows: dict[str, Row], tmp_path: Path) -> None:
    validation.write_csv(list(rows.values()), tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert tuple(read[0]) == COLUMNS
    assert [row["case"] for row in read] == list(rows)
    for text, row in zip(read, rows.values(), strict=True):
        for key, value in dataclasses.asdict(row).items():
            if isinstance(value, float):
                expected = value if math.isfinite(value) else math.nan
                assert float(text[key] or "nan") == pytest.approx(expected, rel=1e-5, nan_ok=True)
            else:
                assert text[key] == str(value)
