"""A case of a directory of packet-level results: its options, fabric, flows, routes and measured completions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from fabsim.engine.problem import Packet
from fabsim.errors import InputError
from fabsim.formats.htsim import degrade_failed, read_matrix, read_path_routes, read_split_routes, read_topology
from fabsim.formats.htsim.matrix import Matrix
from fabsim.routing import Routes, adaptive, all_paths, drawn
from fabsim.topology import Fabric
from fabsim.validation.measured import Measured, read_measured
from fabsim.validation.options import Options
from fabsim.validation.turns import in_turns
from fabsim.workload import Flows

SEEDS = (1, 2, 3, 4, 5)
"""Seeds of drawn sprays and of a law's chance, fixed in advance; figures are medians over them."""

HASHED, AT_SWITCHES = ("ecmp", "oblivious"), ("ecmp_rr", "ecmp_ar")
"""Balancers that choose paths by a hash; those by which each switch spreads packets, in turn or by its queues."""

LISTENING = ("mixed", "bitmap", "reps")
"""Balancers of the sender that choose among hashed paths by what comes back."""


@dataclass(frozen=True)
class Case:
    """One run of the packet simulator.

    Attributes:
        name: of the run.
        folder: of all runs.
        row: its line of summary.csv.
    """

    name: str
    folder: Path
    row: dict[str, str]

    @cached_property
    def options(self) -> Options:
        """How the simulator was called."""
        return Options.parse(self.row["args"], f"{self.folder / 'summary.csv'}: {self.name}")

    @property
    def packet(self) -> Packet:
        """Sizes on the wire."""
        roce = self.options.congestion_control == "roce"
        header = 0.0 if roce else 64.0  # of packets that are all payload
        trim = self.options.real("trimsize", 64)
        return Packet(self.options.mtu, header, trim, acks=True)

    @cached_property
    def fabric(self) -> Fabric:
        """The topology, with what -failed degrades. Its own queue sizes are dropped, as the simulator does."""
        fabric = read_topology(_file(self.folder / "inputs" / "topo", f"{self.row['topo']}.topo"))
        fabric = replace(fabric, buffer=np.full(fabric.links, np.nan))
        return degrade_failed(fabric, self.options.whole("failed", 0, least=0))

    @cached_property
    def matrix(self) -> Matrix:
        """The flows as the file has them. Starts are microseconds in this simulator's files."""
        path = _file(self.folder / "inputs" / "cm", self.row["cm"])
        return read_matrix(path, start_unit="us", hosts=self.fabric.hosts)

    @cached_property
    def measured(self) -> Measured:
        """Starts and completions, in the order of the matrix."""
        return read_measured(_file(self.folder / "fct", f"{self.name}.csv"), self.matrix)

    @cached_property
    def flows(self) -> Flows:
        """The flows with the measured starts: the simulator reads starts in a unit and rounding of its own."""
        flows = self.matrix.flows
        return replace(flows, start=np.where(flows.trigger < 0, self.measured.start, flows.start))

    @cached_property
    def given(self) -> Routes | None:
        """The measured paths or splits, where there are any."""
        ids = [int(flow_id) for flow_id in self.matrix.ids]
        for folder, read in (("paths", read_path_routes), ("splits", read_split_routes)):
            path = _find(self.folder / folder, f"{self.name}.csv")
            if path is not None:
                return read(path, self.fabric, self.matrix.flows, ids)
        return None

    def routes(self) -> tuple[str, list[Routes]]:
        """("paths", one measured routing) or ("drawn", one for each seed, or the even spray alone)."""
        if self.given is not None:
            return "paths", [self.given]
        packets = self.packet.count(self.flows.size)
        if self.options.balancer == "ecmp_ar":
            return "drawn", [adaptive(self.fabric, self.flows)]
        if self.options.balancer == "ecmp_rr":
            return "drawn", [in_turns(self.fabric, self.flows, packets, seed) for seed in SEEDS]
        if self.options.balancer not in HASHED and not self.balances:
            return "drawn", [all_paths(self.fabric, self.flows)]
        spray = partial(drawn, self.fabric, self.flows, entropies=self.options.entropies, packets=packets)
        return "drawn", [spray(seed=seed) for seed in SEEDS]

    def cannot(self) -> str:
        """Why this case cannot be run yet; empty if it can. Raises InputError for files that are missing or wrong."""
        if self.row.get("rc", "0") not in ("0", ""):
            return f"the packet simulator did not finish (rc {self.row['rc']})"
        options, control = self.options, self.options.congestion_control
        if options.unknown:
            return f"option -{options.unknown} is not modelled yet"
        lone = self.matrix.flows.count == 1
        if control not in ("const", "nscc", "rccc", "roce"):
            return f"transport {control} is not modelled yet"
        links = float(self.fabric.capacity[self.fabric.src < self.fabric.hosts].max()) * 8e-6
        nic = options.real("linkspeed", links)
        if not np.isclose(nic, links):
            return f"NICs of {nic:g} Mbps at links of {links:g} Mbps are not modelled yet"
        if self.given is None and options.balancer not in (*HASHED, *AT_SWITCHES, *LISTENING) and not self._even(lone):
            return f"balancer {options.balancer} is not modelled yet"
        unfinished = int(np.isnan(self.measured.finish).sum())
        return f"{unfinished} flows did not finish in the packet simulator" if unfinished else ""

    @property
    def balances(self) -> bool:
        """Whether the split moves with what comes back."""
        lone = self.matrix.flows.count == 1
        return self.given is None and self.options.balancer in LISTENING and not self._even(lone)

    def _even(self, lone: bool) -> bool:
        """Whether any balancer ends up with an even split: what binds is the last hop, and no path is worse."""
        return (lone or len(set(self.matrix.flows.dst)) == 1) and not self.options.whole("failed", 0, least=0)

    def remark(self) -> str:
        """What a reader of the row should know."""
        if self.measured.at_sender:
            return "times of senders, whose acknowledgements queue with the data, on ways drawn"
        if self.matrix.flows.count == 1:
            return "a lone flow"
        if self.options.balancer == "ecmp_rr":
            return "split by the turns of the switches, replayed as if no packet waited"
        if self.options.balancer == "ecmp_ar":
            return "split at the switches, over ports that feel packets"
        if self.given is None and self.options.balancer not in HASHED and not self.balances:
            return f"even split in place of {self.options.balancer}: the last hop binds"
        return ""


def _find(folder: Path, name: str) -> Path | None:
    """The file, gzipped or plain; None where there is none."""
    plain = name.removesuffix(".gz")
    return next((folder / one for one in (name, f"{plain}.gz", plain) if (folder / one).is_file()), None)


def _file(folder: Path, name: str) -> Path:
    """The file, gzipped or plain. Raises InputError where there is none."""
    path = _find(folder, name)
    if path is None:
        raise InputError(f"{folder / name}: there is no such file, nor one that ends in .gz")
    return path
