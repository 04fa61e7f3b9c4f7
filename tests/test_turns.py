"""Turns of switches: evenly filled leaves, and aggregation switches whose flows stay in step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from fabsim.models.granular import GranularQueue
from fabsim.routing import Routes, all_paths
from fabsim.topology import Fabric
from fabsim.typing import Float
from fabsim.validation import compare, directory, model
from fabsim.validation.case import Case
from fabsim.validation.turns import in_turns, ports
from fabsim.workload import Flows

DATA = Path(__file__).parent / "data" / "packets"
PACKETS, POD, LEAF = 490, 16, 4


def case(name: str) -> Case:
    """A measured run."""
    return next(iter(directory.cases(DATA, name)))


def load(fabric: Fabric, routes: Routes) -> Float:
    """[L] parts of a flow on each link."""
    found = np.zeros(fabric.links + 1)
    weight = np.broadcast_to(routes.weight[:, :, None], routes.path.shape)
    np.add.at(found, np.where(routes.path >= 0, routes.path, fabric.links), weight)
    return found[:-1]


def shifted(hosts: int, by: int) -> Flows:
    """Each host to the one so far behind it, all a pod away or more."""
    src = np.arange(hosts)
    zero = np.zeros(hosts)
    flows = case("perm_ft128_400_swrr_nscc").flows
    return replace(flows, src=src, dst=(src + by) % hosts, size=zero + flows.size[0], start=zero)


def busiest(fabric: Fabric, flows: Flows, seed: int) -> float:
    """The most that a port from an aggregation switch to a core has, over the even part of a full pod."""
    routes = in_turns(fabric, flows, np.full(flows.count, PACKETS), seed)
    up = (fabric.tier[fabric.src] == 2) & (fabric.tier[fabric.dst] == 3)
    return float(load(fabric, routes)[up].max())


@pytest.mark.parametrize("seed", [1, 2])
def test_leaves_fill_their_uplinks_evenly(seed: int) -> None:
    fabric = case("perm_ft128_400_swrr_nscc").fabric
    flows = shifted(fabric.hosts, 3 * POD + 1)
    routes = in_turns(fabric, flows, np.full(flows.count, PACKETS), seed)
    assert routes.weight.sum(axis=1) == pytest.approx(1)
    found = load(fabric, routes)
    up = (fabric.tier[fabric.src] == 1) & (fabric.tier[fabric.dst] == 2)
    assert found[up] == pytest.approx(1, abs=1.01 / PACKETS)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_flows_of_a_full_pod_stay_in_step_and_others_do_not(seed: int) -> None:
    """One silent host below each leaf is enough to bring the turns out of step."""
    fabric = case("perm_ft128_400_swrr_nscc").fabric
    flows = shifted(fabric.hosts, 3 * POD + 1)
    some = np.flatnonzero(flows.src % LEAF > 0)
    fewer = replace(flows, **{name: getattr(flows, name)[some] for name in ("src", "dst", "size", "start", "trigger")})
    assert busiest(fabric, flows, seed) > 1.25
    assert busiest(fabric, fewer, seed) / 0.75 < 1.2


def test_a_turn_goes_round_all_ports_and_an_order_lasts_until_it_begins_again() -> None:
    chance = np.random.default_rng(0)
    one = ports(np.zeros(400, int), np.zeros(400, int), np.full(400, 4), chance)
    assert (np.sort(one.reshape(100, 4), axis=1) == np.arange(4)).all()
    in_step = np.tile(np.arange(4), 100)  # four orders, each asked at the same place of every turn
    found = ports(np.zeros(400, int), in_step, np.full(400, 4), chance).reshape(100, 4)
    assert [len(set(column)) for column in found.T] == [4, 1, 1, 1]
    alone = np.where(np.arange(400) % 5 == 0, 1, 4)  # a packet without a choice does not move the turn
    assert (ports(np.zeros(400, int), np.zeros(400, int), alone, chance)[alone == 1] == 0).all()


@pytest.mark.parametrize(("fabric", "last"), [("ft128", 0.06), ("ls128", 0.02)])
def test_round_robin_against_packets(fabric: str, last: float) -> None:
    """On three tiers flows of full pods share ports for long; the split of the turns has that."""
    row = compare.compare(case(f"perm_{fabric}_400_swrr_nscc"))
    assert row.fluid_mean_us == pytest.approx(row.packet_mean_us, rel=0.02)
    assert row.fluid_last_us == pytest.approx(row.packet_last_us, rel=last)
    assert row.err_p90 <= 0.05
    assert row.spread_ratio == pytest.approx(1, abs=0.25)


def test_an_even_split_over_ports_that_feel_packets_does_for_two_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a scenario has it that says `switch_spray`: a single tier of turns is no step to come into."""
    of = case("perm_ls128_400_swrr_nscc")
    plain = model.ports

    def feels(case: Case, queues: object) -> GranularQueue:
        queue = plain(case, queues)  # pyright: ignore[reportArgumentType]
        return GranularQueue(queue.buffer, queue.ecn_low, queue.ecn_high, jnp.full(case.fabric.links, 4150.0))

    monkeypatch.setattr(model, "ports", feels)
    found = compare.fluid(of, all_paths(of.fabric, of.flows), 1)
    packets = of.measured.duration * 1e6
    assert found.took.mean() == pytest.approx(packets.mean(), rel=0.01)
    assert found.took.max() == pytest.approx(packets.max(), rel=0.02)
