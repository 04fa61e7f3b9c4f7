"""What the packet simulator measured about routes: the links of each flow, and packets per flow and link.

Its names: SRC and DST are hosts, LS a leaf, US a spine or aggregation switch, CS a core, each numbered over the whole
fabric, as ours are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fabsim.errors import InputError
from fabsim.formats.tables import read_paths
from fabsim.formats.text import real, records, whole
from fabsim.routing.choose import by_link_counts
from fabsim.routing.explicit import explicit
from fabsim.routing.routes import Routes
from fabsim.topology.graph import Fabric
from fabsim.topology.names import link_names
from fabsim.workload.flows import Flows

NODE = re.compile(r"(SRC|DST|LS|US|CS)_?(\d+)")
TIER = {"SRC": 0, "DST": 0, "LS": 1, "US": 2, "CS": 3}


def read_path_routes(path: str | Path, fabric: Fabric, flows: Flows, ids: Sequence[int] | None = None) -> Routes:
    """Single-path routes from a table with columns flow_id and links ("SRC0->LS0|LS0->US3|US3->LS1|LS1->DST9").

    Our own node names do as well. `ids`: the flow_id of each flow; None: 1, 2, 3, ... in order. Raises InputError for
    flows, names and paths that do not fit.
    """
    named = [[link_name(fabric, link) for link in links] for links in read_paths(path, flows, ids)]
    try:
        return explicit(fabric, flows, named)
    except InputError as error:
        raise InputError([f"{path}: {sentence}" for sentence in error.sentences]) from None


def read_split_routes(path: str | Path, fabric: Fabric, flows: Flows, ids: Sequence[int] | None = None) -> Routes:
    """Split routes from a table with columns flow_id, link, pkts: packets of a flow over each link of the fabric.

    Every switch's shares are the measured ones. Raises InputError (file:line) for a flow or link that is not there.
    """
    number = {flow_id: flow for flow, flow_id in enumerate(range(1, flows.count + 1) if ids is None else ids)}
    index = {name: link for link, name in enumerate(link_names(fabric))}
    rows: list[tuple[int, int, float]] = []
    for place, fields in records(path, ("flow_id", "link", "pkts")):
        flow_id, name = whole(fields["flow_id"], "flow_id", place), link_name(fabric, fields["link"])
        if flow_id not in number:
            raise InputError(f"{place}: flow_id: flow {flow_id} is not there")
        if name not in index:
            raise InputError(f"{place}: link: {fields['link']} is no link of this fabric")
        rows.append((number[flow_id], index[name], real(fields["pkts"], "pkts", place)))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return by_link_counts(fabric, flows, columns[:, 0].astype(int), columns[:, 1].astype(int), columns[:, 2])


def link_name(fabric: Fabric, link: str) -> str:
    """Our name of a link "LS6->US2"; a name that is not of that kind stays as it is."""
    return "->".join(_node_name(fabric, node.strip()) for node in link.split("->"))


def _node_name(fabric: Fabric, node: str) -> str:
    """Our name of a node "LS6"."""
    match = NODE.fullmatch(node)
    if match is None:
        return node
    of_tier = np.flatnonzero(fabric.tier == TIER[match[1]])
    number = int(match[2])
    return fabric.names[of_tier[number]] if number < len(of_tier) else node
