"""Several sites: what joins them, who routes where, what senders know, and what a far failure or queue does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fabsim
from fabsim.cli import main
from fabsim.engine.run import run
from fabsim.engine.setup import prepare
from fabsim.errors import InputError
from fabsim.routing import all_paths, drawn, ecmp
from fabsim.scenario.batch import Compiler, run_all
from fabsim.scenario.check import report
from fabsim.topology import (
    Border,
    Fabric,
    Route,
    Site,
    Tier,
    fat_tree3,
    find_links,
    join,
    leaf_spine,
    link_names,
    long_haul,
    multi_plane,
    torus,
)
from fabsim.topology.baseline import baseline
from fabsim.workload import assemble, incast_from, permutation_across
from tests.small import wire

RATE, US = 50e9, 1e-6
LEAVES = leaf_spine(2, 2, 4, rate=RATE, latency=US)
RING = torus([4, 4], rate=RATE, latency=US)
PAIR = join(
    [Site(LEAVES), Site(RING)],
    [Route((0, 1), 5e-3, 2 * RATE, 2), Route((0, 1), 7e-3, RATE)],
    Border(2, buffer=64e6),
)


def ends(fabric: Fabric, path: np.ndarray) -> list[str]:
    """Names of the links of a path."""
    return [fabric.link_name(int(link)) for link in path if link >= 0]


# What joins them


def test_sites_keep_their_links_and_get_borders() -> None:
    """A torus of a site has the very links that it has alone; hosts are numbered through."""
    assert PAIR.hosts == 24
    assert {name for name in PAIR.names if name.startswith("border")} == {"border0", "border1", "border2", "border3"}
    mine = np.flatnonzero([name.count("border") == 0 for name in link_names(PAIR)])
    alone = [*link_names(LEAVES), *link_names(RING)]
    far = {f"h{host}": f"h{host + 8}" for host in range(16)}
    named = [
        "->".join(name if name.startswith("h") and site == 0 else far.get(name, f"site{site}.{name}") for name in ends_)
        for site, links in ((0, link_names(LEAVES)), (1, link_names(RING)))
        for ends_ in (link.split("->") for link in links)
    ]
    assert len(alone) == len(named)
    assert np.array(link_names(PAIR))[mine].tolist() == named
    np.testing.assert_array_equal(PAIR.capacity[mine], np.concatenate([LEAVES.capacity, RING.capacity]))
    np.testing.assert_array_equal(PAIR.latency[mine], np.concatenate([LEAVES.latency, RING.latency]))
    assert sorted(ends(PAIR, long_haul(PAIR)))[:3] == ["border0->border2#0", "border0->border2#1", "border0->border2#2"]
    np.testing.assert_array_equal(PAIR.latency[find_links(PAIR, "border1->border3")], [5e-3, 5e-3, 7e-3])
    at_border = np.char.startswith(link_names(PAIR), "border")
    np.testing.assert_array_equal(PAIR.buffer[at_border], 64e6)
    assert np.isnan(PAIR.buffer[~at_border]).all()


def test_what_stays_in_a_site_stays_there() -> None:
    """Also in a torus, whose border would be a short cut; what leaves crosses one long-haul link."""
    flows = assemble([0, 8, 0, 9], [5, 18, 20, 1], 1e6)
    for routes in (all_paths(PAIR, flows), ecmp(PAIR, flows, seed=3), drawn(PAIR, flows, entropies=8, seed=1)):
        crosses = np.isin(routes.path, long_haul(PAIR)).sum(-1)
        np.testing.assert_array_equal(crosses, np.broadcast_to([[0], [0], [1], [1]], crosses.shape))
    alone = all_paths(RING, assemble([0], [10], 1e6))
    near = all_paths(PAIR, flows)
    assert (near.weight[1] > 0).sum() == (alone.weight[0] > 0).sum() == 24
    used = ends(PAIR, near.path[2][near.weight[2] > 0].reshape(-1))
    parallel = {name for name in used if name.startswith("border0->b")}
    assert parallel == {"border0->border2#0", "border0->border2#1", "border0->border2#2"}


def test_a_site_between_two_others_passes_on_at_its_border() -> None:
    three = join([Site(LEAVES)] * 3, [Route((0, 1), 1e-3, RATE), Route((2, 1), 1e-3, RATE)], Border())
    path = ends(three, all_paths(three, assemble([0], [20], 1e6)).path[0, 0])
    assert path[3:5] == ["border0->border1", "border1->border2"]
    assert len(path) == 8


def test_planes_stay_apart_between_sites() -> None:
    plane = multi_plane(2, 2, 2, 2, rate=RATE / 2, latency=US)
    both = join([Site(plane, 2), Site(plane, 2)], [Route((0, 1), 1e-3, RATE)], Border())
    assert {"p0.border0", "p1.border0", "p0.border1", "p1.border1"} <= set(both.names)
    for path in all_paths(both, assemble([0], [6], 1e6)).path[0]:
        names = ends(both, path)
        assert all(".p0." in f".{name}" for name in names) or all("p1." in name for name in names), names


# Figures that follow


def uno() -> Fabric:
    """The two data centres of the packet simulator Uno in its own example: two fat trees of 128 hosts, 100 Gbps, eight
    long links between their borders."""
    tier = Tier(12.5e9, US)
    tree = fat_tree3(pods=8, leaves_per_pod=4, hosts_per_leaf=4, leaf_uplinks=4, agg_uplinks=4, tiers=(tier,) * 3)
    return join([Site(tree), Site(tree)], [Route((0, 1), 886.5e-6, 12.5e9, 8)], Border(links=8))


def test_base_round_trips_of_a_site_and_of_the_whole() -> None:
    """Those that Uno prints: 14.02752 and 1,792.04128 us; bandwidth-delay products of 175,344 and 22,400,515 bytes."""
    found = baseline(uno(), 4160.0, 64.0)
    assert [own.rtt for own in found.own] == pytest.approx([14.02752e-6] * 2, rel=1e-9)
    assert [own.bdp for own in found.own] == pytest.approx([175_344] * 2, rel=1e-9)
    assert found.rtt == pytest.approx(1792.04128e-6, rel=1e-9)
    assert found.bdp == pytest.approx(22_400_515, rel=1e-7)


def scenario(**changes: Any) -> fabsim.Scenario:
    """Two sites of eight hosts, 20 km apart, 4 to 1 between them."""
    site = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "rate": "400 Gbps", "latency": "1 us"}
    base: dict[str, Any] = {
        "fabric": {"kind": "sites", "fabrics": [site, site], "routes": [{"latency": "20 km", "rate": "800 Gbps"}]},
        "traffic": [{"kind": "permutation", "size": "4 MB", "across": True}],
        "routing": {"kind": "all"},
    }
    return fabsim.load(base, {key.replace("__", "."): value for key, value in changes.items()})


def done(scenario: fabsim.Scenario, watch: Any = 1) -> Any:
    """A finished run."""
    return fabsim.run(scenario, progress=False, watch=watch)


def test_a_lone_flow_between_sites_is_that_of_the_packets() -> None:
    """10 MB by Uno, until its sender knows: 2,604.74 us. Its headers and its clocking are its own: to 0.05 %."""
    tree = {"kind": "fat_tree", "k": 8, "rate": "100 Gbps", "latency": "1 us"}
    both = scenario(
        fabric={"kind": "sites", "fabrics": [tree, tree], "border": {"links": 8},
                "routes": [{"latency": "886.5 us", "rate": "100 Gbps", "links": 8}]},
        traffic=[{"kind": "flows", "list": [{"src": 0, "dst": 240, "size": "10 MB"}]}],
        routing={"kind": "ecmp"},
        packet={"mtu": "4160 B"},
        transport={"kind": "window", "window": "1.5 BDP"},
    )  # fmt: skip
    assert float(done(both).sender_completion[0]) == pytest.approx(2604.74e-6, rel=5e-4)


def test_ports_and_senders_know_their_own_round_trip() -> None:
    """Buffers of a site are of its own product, not of the long way; windows are the flow's own."""
    mixed = scenario(traffic=[{"kind": "incast", "senders": 4, "far": 2, "size": "1 MB"}], transport={"kind": "nscc"})
    net = mixed.network()
    own, whole = net.baseline.own[0].bdp, net.baseline.bdp
    assert whole / own > 20
    buffer = dict(zip(link_names(net.fabric), net.queues.buffer.tolist(), strict=True))
    assert buffer["site0.leaf0->h0"] == buffer["site0.spine0->border0"] == pytest.approx(own, abs=4150)
    assert buffer["border0->border1"] == buffer["border0->site0.spine1"] == pytest.approx(whole, abs=4150)
    _, model = mixed.compile()
    near = net.flows.src < 8
    rtt = np.asarray(model.transport.network_rtt)
    np.testing.assert_allclose(rtt, np.where(near, net.baseline.own[0].rtt, net.baseline.rtt), rtol=1e-6)
    np.testing.assert_allclose(model.transport.target, 0.75 * rtt, rtol=1e-6)
    given = scenario(fabric__border={"buffer": "16 MB"}, queue={"kind": "trim", "buffer": "2 BDP"}).network()
    buffer = dict(zip(link_names(given.fabric), given.queues.buffer.tolist(), strict=True))
    assert buffer["border1->border0"] == 16e6
    assert buffer["site0.leaf0->h0"] == pytest.approx(2 * own, rel=1e-9)


@pytest.mark.parametrize(
    "law", ["window", "nscc", "dctcp", "swift", "dcqcn", "timely", "hpcc", "powertcp", "rccc", "rccc_oversubscribed"]
)
def test_every_law_takes_figures_of_each_flow(law: str) -> None:
    """Three flows over four paths: what is by flow is nowhere taken for by path."""
    mixed = scenario(traffic=[{"kind": "incast", "senders": 3, "far": 2, "size": "200 kB"}], transport={"kind": law})
    problem, model = mixed.compile()
    assert problem.wires is not None
    jax.eval_shape(lambda problem, model: fabsim.simulate(problem, model, steps=10), problem, model)


# Traffic


def test_everyone_sends_to_another_site() -> None:
    for sites in ([8, 8], [3, 5, 4], [2, 2]):
        flows = permutation_across(sites, 1e6, seed=1)
        of_host = np.repeat(np.arange(len(sites)), sites)
        assert (of_host[flows.src] != of_host[flows.dst]).all()
        assert sorted(flows.dst) == list(range(sum(sites)))
    with pytest.raises(InputError, match="one has 9 of 12"):
        permutation_across([9, 3], 1e6, seed=1)


def test_an_incast_from_near_and_far() -> None:
    flows = incast_from([8, 8, 4], 1e6, near=3, far=5, receiver=9, seed=2)
    near = (flows.src >= 8) & (flows.src < 16)
    assert (near.sum(), (~near).sum()) == (3, 5)
    assert len(set(flows.src)) == 8
    assert 9 not in flows.src


def test_a_ring_over_two_sites_takes_its_steps() -> None:
    """2 (N - 1) steps, each of a chunk over the long way; of grains as of flows of their own."""
    ring = {"kind": "ring", "size": "8 MB", "groups": [[0, 8]], "grain": "chunk"}
    found = done(scenario(traffic=[ring]))
    chunk, way = wire(4e6) / RATE, 98e-6 + 6e-6 + 5.5 * 4150 / RATE
    np.testing.assert_allclose(found.completion, 2 * (chunk + way), rtol=1e-5)


# Queues at the border, routes that fail


def border_queue(scenario: fabsim.Scenario) -> tuple[float, float, float]:
    """Mean over the last half of the run, and largest, of what waits at the border of site 0, and bytes cut there."""
    found = done(scenario, ["border0->border1"])
    queue = found.series_queue[:, 0]
    cut = found.dropped[list(found.link).index("border0->border1")]
    return float(queue[len(queue) // 2 :].mean()), float(found.series_peak.max()), float(cut)


def test_a_deep_buffer_and_control_from_end_to_end() -> None:
    """Fixed windows of 1.5 products fill the deep buffer with all that is not on the way: N W - C T, exactly. NSCC
    keeps to its target delay, where ports mark by the product of the way and not by their deep buffer. In a shallow
    buffer the windows only overflow."""
    deep = scenario(
        traffic=[{"kind": "flows", "list": [{"src": i, "dst": 8 + i, "size": "200 MB"} for i in range(4)]}],
        fabric__routes=[{"latency": "20 km", "rate": "400 Gbps"}],
        fabric__border={"buffer": "200 MB"},
        queue={"kind": "trim", "ecn_low": "0.2 BDP", "ecn_high": "0.8 BDP"},
        transport={"kind": "window", "window": "1.5 BDP"},
        until="2 ms",
    )  # fmt: skip
    base = deep.network().baseline
    problem, model = deep.compile()
    mean, _, cut = border_queue(deep)
    rtt = float(prepare(problem, model).round_trip[0] * problem.dt)
    assert mean == pytest.approx(4 * 1.5 * base.nic_bdp - RATE * rtt, rel=0.01)
    assert cut == 0
    controlled, _, cut = border_queue(deep.change({"transport": {"kind": "nscc"}, "until": "8 ms"}))
    assert 0.9 < controlled / (0.75 * base.rtt * RATE) < 1.5
    assert cut == 0
    _, most, cut = border_queue(deep.change({"fabric.border.buffer": "1 MB"}))
    assert most == pytest.approx(1e6, rel=0.01)
    assert cut > 1e6


def test_what_is_lost_far_away_adds_up_to_nothing() -> None:
    """Tens of megabytes are lost and not known yet, for thousands of steps: when all is known not a byte is left, which
    would keep a flow from its end for ever."""
    far = scenario(
        traffic=[{"kind": "incast", "receiver": 0, "senders": [8, 9, 12, 13], "size": "100 MB"}],
        fabric__routes=[{"latency": "300 km", "rate": "400 Gbps", "links": 4}],
        transport={"kind": "nscc"},
    )
    problem, model = far.compile()
    made = run(problem, model, progress=False)
    assert float(made.trace.frames.dropped.sum()) > 1e8
    left = np.asarray(made.trace.state.flow.lost) * float(problem.unit)
    np.testing.assert_allclose(left, 0.0, atol=1.0)


def test_a_failed_route_is_left_after_its_protection_time() -> None:
    """Two routes; one dies. What waits there is given up after the reaction, and comes by the other one."""
    two = {"fabric__routes": [{"latency": "20 km", "rate": "400 Gbps"}] * 2}
    flow = {"kind": "flows", "list": [{"src": 0, "dst": 8, "size": "8 MB"}]}
    took = []
    for react in ("300 us", "800 us"):
        cut = [{"link": "border0<->border1#0", "at": "50 us", "speed": 0.0, "react": react}]
        broken = scenario(**two, traffic=[flow], faults=cut)
        took.append(float(done(broken).completion[0]))
    assert took[1] - took[0] == pytest.approx(500e-6, abs=2e-6)
    whole = float(done(scenario(**two, traffic=[flow])).completion[0])
    assert took[0] > whole + 250e-6
    hit = [{"link": link, "speed": 0.0} for link in ("border0<->border1#0", "site0.leaf0->site0.spine0")]
    problem, _ = scenario(**two, faults=hit, react="40 us").compile()
    assert problem.faults is not None
    np.testing.assert_allclose(problem.faults.react, [50e-3, 40e-6])


# A sweep, the command, and what is refused


def test_distances_are_swept_as_one_program() -> None:
    """Farther sites take longer by the difference of their ways."""
    small = {"traffic": [{"kind": "flows", "list": [{"src": 0, "dst": 8, "size": "1 MB"}]}]}
    compiler = Compiler()
    members = [
        compiler.compile(scenario(**small, fabric__routes=[{"latency": km, "rate": "800 Gbps"}]))
        for km in ("20 km", "50 km", "100 km")
    ]
    found = run_all(members, ["last_completion"])
    last = np.asarray(found.figures["last_completion"])
    np.testing.assert_allclose(np.diff(last), [30 * 4.9e-6, 50 * 4.9e-6], rtol=1e-4)


def test_check_counts_sites_and_routes(capsys: pytest.CaptureFixture[str]) -> None:
    config = str(Path(__file__).parents[1] / "configs" / "sites.yaml")
    assert main(["check", config]) == 0
    text = capsys.readouterr().out
    assert "32 hosts, base RTT 8.337 us, BDP 416.9 kB; hosts over long-haul links: 4 to 1" in text
    assert "site 0 to site 1: 4 of 800 Gbps over 490 us (100 km)" in text
    assert "8 of 800G ZR" in text


def test_links_inside_servers_lead_to_no_other_site() -> None:
    """Four NICs of 400 Gbps over one long-haul link of 800, whatever NVLink carries."""
    rails = {"kind": "rail_optimised", "servers": 2, "rails": 2, "spines": 2, "rate": "400 Gbps", "latency": "1 us",
             "nvlink_rate": "450 GB/s"}  # fmt: skip
    made = {"kind": "sites", "fabrics": [rails, rails], "routes": [{"latency": "20 km", "rate": "800 Gbps"}]}
    assert report(scenario(fabric=made)).count("hosts over long-haul links: 2 to 1") == 2


def test_show_and_plot_know_the_links_between_sites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of the command, its table, and all its pictures."""
    small = tmp_path / "small.yaml"
    flow = {"kind": "flows", "list": [{"src": 0, "dst": 8, "size": "1 MB"}]}
    small.write_text(scenario(traffic=[flow]).resolved())
    out = str(tmp_path / "run.h5")
    assert main(["run", str(small), "--no-plot", "--out", out]) == 0
    assert main(["show", out]) == 0
    assert "border0->border1" in capsys.readouterr().out
    for kind, more in (("map", []), ("time", ["--link", "border0->border1"]), ("overview", [])):
        assert main(["plot", out, "--kind", kind, *more, "--out", str(tmp_path / f"{kind}.png")]) == 0


def test_presets_are_distances() -> None:
    for preset, km in (("fairwater", 1127), ("campus", 2)):
        text = report(scenario(fabric__routes=[{"preset": preset, "rate": "1 Tbps"}]))
        assert f"({km:,} km)" in text


SITE: dict[str, Any] = {"kind": "single_switch", "hosts": 2, "rate": "1 Gbps", "latency": "1 us"}
INCAST = {"kind": "incast", "size": "1 MB"}
PLANES = {"kind": "multi_plane", "planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 1, "rate": "1 Gbps",
          "latency": "1 us"}  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), [
    ({"fabric__fabrics": [SITE]}, "fabric.fabrics: "),
    ({"fabric__routes": [{"rate": "1 Gbps"}]}, "fabric.routes.0: a route without a preset needs a latency"),
    ({"fabric__routes": [{"latency": "1 km", "rate": "1 Gbps", "between": [0, 2]}]},
     "between: two of the sites 0 to 1 are needed, given [0, 2]"),
    ({"fabric__fabrics": [SITE, SITE, SITE]}, "fabric.routes: none leads from site 0 to site 2; give one"),
    ({"fabric__fabrics": [SITE, PLANES], "traffic": [{"kind": "shift", "by": 1, "size": "1 MB"}]},
     "planes are joined each to its like: site 0 has 1, this one 2"),
    ({"fabric__fabrics": [{**SITE, "degraded": [{"link": "leaf0", "speed": 0.5}]}, SITE]}, "under fabric.degraded"),
    ({"fabric__fabrics": [{**SITE, "hosts": 5}, SITE]}, "a site has 5 of 7 hosts, more than all others"),
    ({"fabric__fabrics": [{"kind": "torus", "dims": [300], "rate": "1 Gbps", "latency": "1 us"}, SITE]},
     "fabric.fabrics.0.dims: the farthest routers are 150 links apart"),
    ({"fabric__routes": [{"latency": "1 km"}]}, "fabric.routes.0.rate: missing"),
    ({"fabric": SITE}, "traffic.0.across: there is one site"),
    ({"traffic": [INCAST | {"senders": 3, "far": 4}]}, "traffic.0.far: more than all senders, given 4"),
    ({"traffic": [INCAST | {"senders": [1, 9], "far": 1}]}, "traffic.0.far: the senders are listed"),
    ({"traffic": [INCAST | {"senders": 9, "far": 1}]}, "leaves 8 for the receiver's site, where 7 others are"),
    ({"traffic": [INCAST | {"senders": 9, "far": 9}]}, "the other sites have 8 hosts, given 9"),
])  # fmt: skip
def test_what_cannot_be_is_one_sentence(changes: Mapping[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        scenario(**changes)
    assert says in "\n".join(error.value.sentences)


@pytest.mark.parametrize(("sites", "routes", "border", "says"), [
    ([Site(LEAVES)], [], Border(), "sites: 1 given, at least 2"),
    ([Site(LEAVES)] * 2, [Route((0, 0), 1e-3, RATE)], Border(), "between 0 and 0; give two of the sites 0 to 1"),
    ([Site(LEAVES)] * 2, [], Border(), "none leads from site 0 to site 1"),
    ([Site(LEAVES), Site(LEAVES, 2)], [Route((0, 1), 1e-3, RATE)], Border(), "different numbers of planes (1, 2)"),
    ([Site(LEAVES)] * 2, [Route((0, 1), -1.0, 0.0, 0)], Border(0, rate=-1.0), "border switches: 0 given"),
])  # fmt: skip
def test_join_refuses(sites: Any, routes: Any, border: Border, says: str) -> None:
    with pytest.raises(InputError) as error:
        join(sites, routes, border)
    assert says in "\n".join(error.value.sentences)
