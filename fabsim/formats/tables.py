"""Our own CSV tables (plain or gzipped): flows, and paths by link names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabsim.errors import InputError
from fabsim.formats.text import host, real, records, whole
from fabsim.workload.flows import Flows
from fabsim.workload.listed import Row, listed


def read_flows(path: str | Path, hosts: int) -> Flows:
    """Flows from columns src, dst, bytes and, if wanted, start_us; flow i is the i-th row.

    Raises InputError (file:line) for a host that is not there, a flow to itself, a number out of range.
    """
    rows = []
    for place, fields in records(path, ("src", "dst", "bytes"), ("start_us", "flow_id")):
        src, dst = host(fields, "src", hosts, place), host(fields, "dst", hosts, place)
        if src == dst:
            raise InputError(f"{place}: a flow goes from host {src} to itself: give two different hosts")
        start = real(fields.get("start_us", "0"), "start_us", place) * 1e-6
        rows.append(Row(src, dst, real(fields["bytes"], "bytes", place), start))
    if not rows:
        raise InputError(f"{path}: there are no flows in this file")
    return listed(hosts, rows)


def read_paths(path: str | Path, flows: Flows, ids: Sequence[int] | None = None) -> list[list[str]]:
    """Link names of each flow's path, from columns flow_id and links ("h0->leaf0|leaf0->spine3|...").

    `ids`: the flow_id of each flow; None: 1, 2, 3, ... in order. Columns src and dst are checked where present.
    Raises InputError (file:line) for an unknown or repeated flow, and where a flow has no row.
    """
    number = {flow_id: flow for flow, flow_id in enumerate(range(1, flows.count + 1) if ids is None else ids)}
    found: dict[int, list[str]] = {}
    for place, fields in records(path, ("flow_id", "links"), ("src", "dst")):
        flow_id = whole(fields["flow_id"], "flow_id", place)
        flow = number.get(flow_id)
        if flow is None or flow in found:
            raise InputError(f"{place}: flow_id: flow {flow_id} " + ("is not there" if flow is None else "comes twice"))
        for key, there in (("src", flows.src[flow]), ("dst", flows.dst[flow])):
            if key in fields and whole(fields[key], key, place) != there:
                raise InputError(f"{place}: {key}: {fields[key]} given, but flow {flow_id} has {there}")
        found[flow] = [name.strip() for name in fields["links"].split("|")]
    missing = [flow_id for flow_id, flow in number.items() if flow not in found]
    if missing:
        raise InputError(f"{path}: flow {missing[0]} has no path (nor have {len(missing) - 1} others)")
    return [found[flow] for flow in range(flows.count)]
