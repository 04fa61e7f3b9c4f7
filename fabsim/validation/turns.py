"""The turns of uet-htsim's switches, where each sends every packet by the next port: the split that they end in."""

from __future__ import annotations

import numpy as np

from fabsim.routing import Routes
from fabsim.routing.paths import candidates, find_ends
from fabsim.topology import Fabric
from fabsim.typing import Bool, Int
from fabsim.workload import Flows


def in_turns(fabric: Fabric, flows: Flows, packets: Int, seed: int) -> Routes:
    """Switch round robin, packet by packet, as if all flows began at once, each sent a packet at a time, and none ever
    waited on its way; weight = share of the packets. Hosts have one port.

    A switch has one turn, which each packet with a choice moves on (acknowledgements are hashed), over the ports in an
    order that is drawn anew by whom the turn begins again. Below the first tier all destinations have one order, and
    uplinks are filled evenly. Above, each has its own (the routing strategy RR in fat_tree_switch.cpp of uet-htsim): a
    flow whose packets come in step with the turn keeps its port until the step is lost, together with others. Where
    all hosts of a pod send out of it they all are in step, and some ports get two fifths more than others.

    Args:
        packets: [F] of each flow, at least 1.
        seed: of the orders.

    Raises InputError as all ways to route do.
    """
    ends = find_ends(fabric, flows)
    found, tables = candidates(fabric, flows, ends), ends.tables
    chance = np.random.default_rng(seed)
    _, flow = np.nonzero(np.arange(packets.max(initial=0))[:, None] < packets)  # in the order of departure
    place = ends.place[ends.pair[flow, 0]]
    rank = np.zeros(len(flow), np.int64)
    for tier in range(ends.hops):
        moving = np.flatnonzero(tables.distance[place] > 0)
        at = place[moving]
        switch = tables.switch(at)
        order = switch * fabric.hosts + (flows.dst[flow[moving]] if tier else 0)
        entry = tables.alive[tables.first[at] + ports(switch, order, tables.living[at], chance)]
        rank[moving] += tables.entry_base[entry] - tables.base[at]
        place[moving] = tables.entry_place[entry]
    lanes = found.path.shape[1]
    lane = -(-rank * lanes // found.count[flow])  # the first of the group of that path
    share = np.bincount(flow * lanes + lane, minlength=flows.count * lanes).reshape(-1, lanes)
    return Routes(found.path, share / packets[:, None])


def ports(switch: Int, order: Int, choices: Int, chance: np.random.Generator) -> Int:
    """[W] number of the port that each packet takes, in the order of arrival.

    Args:
        switch, order: [W] where it is, and which order of ports it goes by.
        choices: [W] among how many ports; one that has no choice leaves the turn as it is.
    """
    some = np.flatnonzero(choices > 1)
    every = np.ones(len(some), bool)
    turn = (so_many(switch[some], every) - 1) % choices[some]
    drawn_anew = so_many(order[some], turn == 0)
    _, first, drawing = np.unique(order[some] * (len(some) + 1) + drawn_anew, return_index=True, return_inverse=True)
    number = np.arange(choices.max(initial=1))
    key = np.where(number < choices[some][first][:, None], chance.random((len(first), len(number))), 1.0)
    port = np.zeros(len(switch), np.int64)
    port[some] = key.argsort(axis=1)[drawing, turn]
    return port


def so_many(group: Int, counts: Bool) -> Int:
    """[W] members of its group that count, up to each and with it."""
    by = np.argsort(group, kind="stable")
    total = counts[by].cumsum()
    first = np.flatnonzero(np.diff(group[by], prepend=-1))
    before = (total - counts[by])[first]
    found = np.empty(len(group), np.int64)
    found[by] = total - np.repeat(before, np.diff(first, append=len(group)))
    return found
