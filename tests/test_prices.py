"""What a fabric is made of and what it costs; and the scenario keys of the fabrics beside the Clos."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabsim
from fabsim.errors import InputError
from fabsim.scenario.check import report
from fabsim.scenario.compile.prices import load_prices
from fabsim.topology import NvLink, fat_tree, leaf_spine, multi_plane, rail_only, single_switch
from fabsim.topology.bill import Bill, bill
from fabsim.topology.prices import OpticPrice, Prices, SwitchPrice

CONFIGS = Path(__file__).parents[1] / "configs"
G100 = 12.5e9
FIFTY_METRES = 50 * 4.9e-9
TOY = Prices(
    "coins",
    (SwitchPrice("large", 8, 8 * G100, 8, 100.0, 1000.0), SwitchPrice("small", 4, 4 * G100, 4, 30.0, 200.0)),
    (
        OpticPrice("copper", 4 * G100, 3.0, 4, 0, 0.0, 1.0),
        OpticPrice("eight", 8 * G100, 500.0, 8, 8, 10.0, 50.0),
        OpticPrice("one", G100, 500.0, 1, 1, 2.0, 10.0),
    ),
    100.0,
)


def total(found: Bill) -> tuple[int, int]:
    return found.switches.total(), found.optics.total()


def test_planes_against_three_tiers() -> None:
    """arXiv:2605.04333: 8 planes of two tiers need about 2/3 of the optics and 3/5 of the switches of three tiers, at
    equal hosts and bandwidth. Scaled down: switches of 8 x 800 Gbps or 64 x 100 Gbps, 128 hosts, all ports in use."""
    tree = fat_tree(8, rate=8 * G100, latency=FIFTY_METRES)
    planes = multi_plane(8, 4, 2, 32, uplinks=16, rate=G100, latency=FIFTY_METRES)
    assert tree.hosts == planes.hosts == 128
    for fabric, ports in ((tree, 8), (planes, 64)):
        used = np.bincount(fabric.src, minlength=len(fabric.names))[fabric.hosts :]
        assert set(used.tolist()) == {ports}
    injected = [fabric.capacity[fabric.src < fabric.hosts].sum() for fabric in (tree, planes)]
    assert injected[0] == injected[1]
    three, eight = total(bill(tree, TOY)), total(bill(planes, TOY))
    assert three == (80, 6 * 128)
    assert eight[0] / three[0] == pytest.approx(3 / 5, rel=0.05)
    assert eight[1] / three[1] == pytest.approx(2 / 3, rel=0.05)
    real = [bill(fabric, load_prices()) for fabric in (tree, planes)]
    speed = {optic.name: optic.speed for optic in load_prices().optics}
    plugged = [sum(speed[name] * count for name, count in found.optics.items()) for found in real]
    assert plugged[1] / plugged[0] == pytest.approx(2 / 3, rel=0.05)
    assert real[1].cost < real[0].cost


def test_a_bill_by_hand() -> None:
    """2 leaves of 2 hosts, 1 spine; 50 m everywhere: 6 cables at 100 Gbps."""
    fabric = leaf_spine(2, 1, 2, rate=G100, latency=FIFTY_METRES, switch_latency=1e-6)
    found = bill(fabric, TOY, 1e-6)
    assert dict(found.switches) == {"small": 3}
    assert dict(found.optics) == {"one": 12}
    assert (found.ports, found.cables, found.missing) == (8, 6, ())
    assert found.kilometres == pytest.approx(0.3)
    assert found.watts == 3 * 30 + 12 * 2
    assert found.cost == pytest.approx(3 * 200 + 12 * 10 + 0.3 * 100)


def test_the_cheapest_that_fits() -> None:
    """Eight ports of one node share a transceiver where that is cheaper; short cables are copper; too much is told."""
    fabric = leaf_spine(2, 1, 2, rate=G100, latency=FIFTY_METRES, uplinks=8)
    assert dict(bill(fabric, TOY).optics) == {"one": 4, "eight": 6}
    short = bill(leaf_spine(2, 1, 2, rate=G100, latency=2 * 4.9e-9), TOY)
    assert (short.optics.total(), dict(short.copper)) == (0, {"copper": 7})
    assert short.cost == 3 * 200 + 7
    long = bill(leaf_spine(2, 1, 2, rate=G100, latency=1e-4), TOY)
    assert long.missing == ("12 cable ends of 100 Gbps: 20.4 km is beyond the reach of the list",)
    fast = bill(leaf_spine(2, 9, 2, rate=16 * G100, latency=0), TOY)
    assert any("too fast for the optics" in text for text in fast.missing)
    assert any("2 switches with 11 ports of 1.6 Tbps" in text for text in fast.missing)


def test_optics_fit_the_cages_of_their_switch() -> None:
    """32 ports of 400 Gbps, in 32 cages as fast: a module each, though one of 800 Gbps for two ports costs less."""
    found = bill(leaf_spine(2, 1, 16, rate=4 * G100, latency=FIFTY_METRES, uplinks=16), load_prices())
    assert dict(found.switches) == {"32 x 400G": 3}
    assert dict(found.optics) == {"400G DR4": 2 * 16 + 3 * 32}
    slow = bill(leaf_spine(2, 1, 4, rate=G100, latency=FIFTY_METRES, uplinks=4), load_prices())
    assert (dict(slow.switches), dict(slow.optics)) == ({"32 x 100G": 3}, {"100G DR1": 2 * 4 + 3 * 8})


def test_a_switch_is_chosen_together_with_its_optics() -> None:
    """Eight ports: a slow switch of 90 with eight modules of 20 costs 250, a fast one of 100 with four of 30, for two
    ports each, 220; with four of 40, 260. A fast switch without such modules has too few cages."""
    slow, fast = SwitchPrice("slow", 8, 4 * G100, 1, 0.0, 90.0), SwitchPrice("fast", 4, 8 * G100, 2, 0.0, 100.0)
    one = OpticPrice("one", 4 * G100, 500.0, 1, 1, 0.0, 20.0)
    fabric = single_switch(8, rate=4 * G100, latency=FIFTY_METRES)
    for cost, switch, optics in ((30.0, "fast", {"one": 8, "two": 4}), (40.0, "slow", {"one": 16})):
        two = OpticPrice("two", 8 * G100, 500.0, 2, 2, 0.0, cost)
        found = bill(fabric, Prices("coins", (slow, fast), (one, two), 0.0))
        assert (dict(found.switches), dict(found.optics)) == ({switch: 1}, optics)
        assert found.cost == 8 * 20 + (220 if cost == 30 else 250)
    cages = bill(fabric, Prices("coins", (fast,), (one,), 0.0))
    assert cages.missing == ("1 switches with 8 ports of 400 Gbps: none in the list has cages for as many",)


def test_a_cable_is_copper_at_both_ends_or_at_none() -> None:
    """Two cages take one module for two ports each, and copper for one: all four cables are fibre, NICs' ends too."""
    switch = SwitchPrice("two", 2, 2 * G100, 2, 0.0, 1.0)
    copper, module = OpticPrice("copper", G100, 3.0, 1, 0, 0.0, 1.0), OpticPrice("pair", 2 * G100, 9.0, 2, 2, 0.0, 9.0)
    prices = Prices("coins", (switch,), (copper, module), 0.0)
    full, half = (bill(single_switch(hosts, rate=G100, latency=2 * 4.9e-9), prices) for hosts in (4, 2))
    assert (dict(full.copper), dict(full.optics)) == ({}, {"pair": 4 + 2})
    assert (dict(half.copper), dict(half.optics)) == ({"copper": 4}, {})


def test_what_is_inside_a_server_is_not_counted() -> None:
    found = bill(rail_only(2, 2, nvlink=NvLink(450e9, 1e-7), rate=G100, latency=FIFTY_METRES), TOY)
    assert (found.switches.total(), found.cables) == (2, 4)


def test_the_list_to_edit_is_the_one_built_in() -> None:
    assert load_prices(CONFIGS / "prices.yaml") == load_prices()
    assert all(price.watts > 0 and price.cost > 0 for price in (*load_prices().switches, *load_prices().optics))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("watts: 2400", "wats: 2400", "switches.0.wats: unknown key, given 2400; did you mean 'watts'"),
        ("speed: 1.6 Tbps, split: 8, watts: 2400", "speed: 1.6, split: 8, watts: 2400", "switches.0.speed: .* no unit"),
        ("reach: 2 m, ", "reach: 2 us, ", "optics.0.reach: not a length"),
        ("cost: 90000", "cost: -1", "switches.0.cost: must be at least 0"),
        ("fibre: {cost_per_km: 150, source: assumed}", "", "fibre: missing"),
    ],
)
def test_a_bad_price_list(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    text = (CONFIGS / "prices.yaml").read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "p.yaml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=rf"p\.yaml:\d+:\d+: {sentence}"):
        load_prices(file)


@pytest.mark.parametrize("name", ["multi_plane", "rail", "torus", "dragonfly"])
def test_check_says_what_it_is_made_of(name: str) -> None:
    text = report(fabsim.load(CONFIGS / f"{name}.yaml"))
    for key in ("switches", "ports in use", "optics", " km, ", " kW ", " USD, illustrative"):
        assert key in text


def test_check_says_which_switches_are_not_bought() -> None:
    """Those inside servers stand in the first line and in no bill of switches."""
    text = report(fabsim.load({"fabric": {**RAIL, "nvlink_rate": "450 GB/s"}, "traffic": TRAFFIC}))
    all_of_them, inside = map(int, re.findall(r"(\d+) switches \((\d+) of them inside servers\)", text)[0])
    (bought,) = re.findall(r"^  switches +(\d+) ", text, re.MULTILINE)
    assert inside == RAIL["servers"]
    assert all_of_them - inside == int(bought)
    assert "inside servers" not in report(fabsim.load({"fabric": RAIL, "traffic": TRAFFIC}))


TRAFFIC = [{"kind": "permutation", "size": "64 kB"}]
PLANE = {"kind": "multi_plane", "leaves": 2, "latency": "1 us"}
FLY = {"kind": "dragonfly", "groups": 4, "routers_per_group": 3, "hosts_per_router": 1, "global_links": 1,
       "rate": "100 Gbps", "latency": "1 us"}  # fmt: skip
RAIL = {"kind": "rail_optimised", "servers": 4, "spines": 4, "rate": "100 Gbps", "latency": "1 us"}


@pytest.mark.parametrize(
    ("fabric", "routing", "sentence"),
    [
        (PLANE, None, "fabric: planes without a preset need planes, spines, hosts_per_leaf, rate too; or give preset"),
        ({**PLANE, "preset": "8x100G", "ports": 511}, None, "fabric.ports: a leaf needs 512 ports"),
        ({**PLANE, "preset": "8x50G"}, None, "fabric.preset: not one of the choices, given '8x50G'"),
        ({**RAIL, "ports": 7}, None, r"fabric.ports: a leaf needs 8 ports \(4 servers \+ 4 uplinks\)"),
        ({**RAIL, "kind": "rail_only"}, None, "fabric.spines: unknown key"),
        ({**RAIL, "nvlink_latency": "1 us"}, None, "fabric.nvlink_latency: goes with nvlink_rate"),
        ({"kind": "rail_only", "fabric_rate": "1 Gbps"}, None, "fabric.fabric_rate: unknown key"),
        ({"kind": "torus", "dims": [], "rate": "1 Gbps", "latency": "1 us"}, None, "fabric.dims: must not be empty"),
        (
            {"kind": "torus", "dims": [300], "rate": "1 Gbps", "latency": "1 us"},
            None,
            "fabric.dims: .* 150 links apart",
        ),
        (
            {"kind": "torus", "dims": [3, 0], "rate": "1 Gbps", "latency": "1 us"},
            None,
            "fabric.dims.1: must be at least",
        ),
        (
            {**FLY, "groups": 6},
            None,
            "fabric.global_links: a group has 3 ports for 5 other groups, given 1; .* least 2",
        ),
        ({**FLY, "ports": 3}, None, "fabric.ports: a router needs 4 ports"),
        (FLY, {"kind": "valiant", "groups": 3}, "routing.groups: two groups have 2 others"),
        ({**FLY, "groups": 2}, {"kind": "valiant"}, "routing.kind: valiant paths need a third group"),
        (RAIL, {"kind": "valiant"}, "routing.kind: valiant paths go through groups, which a rail_optimised does not"),
        (FLY, {"kind": "valiant", "minimal": 1.5}, "routing.minimal: must be at most 1"),
        ({**RAIL, "kind": "torsu"}, None, "fabric: there is no kind 'torsu'; did you mean 'torus'"),
    ],
)
def test_refusals_of_scenarios(fabric: dict[str, Any], routing: dict[str, Any] | None, sentence: str) -> None:
    scenario = {"fabric": fabric, "traffic": TRAFFIC, **({"routing": routing} if routing else {})}
    with pytest.raises(InputError, match=sentence):
        fabsim.load(scenario).network()


def test_a_rail_pair_without_switches_between_is_refused() -> None:
    rails = {"kind": "rail_only", "servers": 4, "rate": "1 Gbps", "latency": "1 us", "nvlink_rate": "9 GB/s"}
    with pytest.raises(InputError, match=r"routing: no route from host 0 to host 9.*hosts do not forward"):
        fabsim.load({"fabric": rails, "traffic": [{"kind": "shift", "by": 9, "size": "1 kB"}]}).network()


def test_a_preset_and_what_is_given_beside_it() -> None:
    scenario = {"fabric": {**PLANE, "preset": "4x200G", "hosts_per_leaf": 3, "spines": 2}, "traffic": TRAFFIC}
    net = fabsim.load(scenario).network()
    assert (net.fabric.hosts, net.routes.path.shape) == (6, (6, 1, 4))
    assert set(net.fabric.capacity.tolist()) == {25e9}
