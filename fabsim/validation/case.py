"""A case of a directory of packet-level results: its options, fabric, flows and measured completions.

Layout of such a directory: `summary.csv` (one row a run: name, topo, cm, rc, user_s, args, ...), `inputs/topo/T.topo`,
`inputs/cm/M` or `M.gz`, `fct/<run>.csv.gz` (flow_id, ..., rx_finish_us), and for some runs `paths/<run>.csv.gz` (the links
of each flow) or `splits/<run>.csv.gz` (packets per flow and link). Options are those of uet-htsim.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from fabsim.engine.problem import Packet
from fabsim.errors import InputError
from fabsim.formats.htsim import degrade_failed, read_matrix, read_path_routes, read_split_routes, read_topology
from fabsim.formats.htsim.matrix import Matrix
from fabsim.routing import Routes, all_paths, drawn
from fabsim.topology import Fabric
from fabsim.typing import Float

HOST_SPRAYS = {"oblivious", "mixed", "bitmap", "reps", "reps_legacy"}
SEEDS = (1, 2, 3, 4, 5)
"""Seeds of drawn sprays, fixed in advance; figures are medians over them."""


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
    def options(self) -> dict[str, str]:
        """Options and their values ("" for a switch)."""
        words, found = self.row["args"].split(), {}
        for at, word in enumerate(words):
            if word.startswith("-"):
                follows = words[at + 1] if at + 1 < len(words) else "-"
                found[word[1:]] = "" if follows.startswith("-") else follows
        return found

    @property
    def mtu(self) -> float:
        """Bytes of a full packet."""
        return float(self.options.get("mtu", 4150))

    @property
    def horizon(self) -> float:
        """Seconds that the packet simulator was given."""
        return float(self.options.get("end", 1000)) * 1e-6

    @property
    def congestion_control(self) -> str:
        """nscc, const, rccc or what else the options say."""
        if self.options.get("sender_cc_algo") == "constant":
            return "const"
        return "rccc" if "receiver_cc_only" in self.options else "nscc" if "sender_cc_only" in self.options else "roce"

    @property
    def balancer(self) -> str:
        """ecmp, oblivious, mixed, ...; strategies of the switches as they are called there."""
        if self.options.get("paths") == "1":
            return "ecmp"
        strategy = self.options.get("strat", "ecmp_host")
        return self.options.get("load_balancing_algo", "mixed") if strategy == "ecmp_host" else strategy

    @cached_property
    def fabric(self) -> Fabric:
        """The topology, with what -failed degrades."""
        fabric = read_topology(self.folder / "inputs" / "topo" / f"{self.row['topo']}.topo")
        return degrade_failed(fabric, int(self.options.get("failed", 0)))

    @cached_property
    def matrix(self) -> Matrix:
        """The flows. Starts are microseconds in this simulator's files."""
        path = self.folder / "inputs" / "cm" / self.row["cm"]
        path = path if path.exists() else path.with_name(path.name + ".gz")
        return read_matrix(path, start_unit="us", hosts=self.fabric.hosts)

    @cached_property
    def measured(self) -> Float:
        """[F] seconds at which the last byte was at the receiver, in the order of the matrix."""
        path = self.folder / "fct" / f"{self.name}.csv.gz"
        with gzip.open(path, "rt") as file:
            rows = {int(row["flow_id"]): row for row in csv.DictReader(file)}
        missing = [flow_id for flow_id in self.matrix.ids if int(flow_id) not in rows]
        if missing:
            raise InputError(f"{path}: flow {missing[0]} of the matrix is not there")
        return np.array([float(rows[int(flow_id)]["rx_finish_us"]) * 1e-6 for flow_id in self.matrix.ids])

    def routes(self) -> tuple[str, list[Routes]]:
        """("paths", one measured routing) or ("drawn", one for each seed, or the even spray alone)."""
        flows, ids = self.matrix.flows, [int(i) for i in self.matrix.ids]
        for folder, read in (("paths", read_path_routes), ("splits", read_split_routes)):
            path = self.folder / folder / f"{self.name}.csv.gz"
            if path.exists():
                return "paths", [read(path, self.fabric, flows, ids)]
        if self.balancer in ("oblivious", "ecmp"):
            entropies = int(self.options.get("paths", 64))
            packets = Packet(mtu=self.mtu).count(flows.size)
            spray = partial(drawn, self.fabric, flows, entropies=entropies, packets=packets)
            return "drawn", [spray(seed=seed) for seed in SEEDS]
        return "drawn", [all_paths(self.fabric, flows)]

    def cannot(self) -> str:
        """Why this case cannot be run yet; empty if it can."""
        if self.row.get("rc", "0") not in ("0", ""):
            return f"the packet simulator did not finish (rc {self.row['rc']})"
        if "lh_dc" in self.name or "dc" in self.row["topo"]:
            return "two sites: delay lines of long links are not modelled yet"
        lone, incast = self.matrix.flows.count == 1, len(set(self.matrix.flows.dst)) == 1
        if self.congestion_control != "const" and not lone:
            return f"transport {self.congestion_control} is not modelled yet"
        if self.balancer not in ("ecmp", "oblivious") and not (lone or incast):
            return f"balancer {self.balancer} is not modelled yet"
        return ""

    def remark(self) -> str:
        """What a reader of the row should know."""
        if self.matrix.flows.count == 1:
            return "a lone flow never leaves its first window of 1.5 BDP"
        if self.balancer not in ("ecmp", "oblivious"):
            return f"even split in place of {self.balancer}: the last hop binds"
        return ""


def cases(folder: Path, pattern: str = "*") -> list[Case]:
    """The cases of a directory whose names fit the pattern (as file names do). Raises InputError if there is none."""
    table = folder / "summary.csv"
    if not table.is_file():
        raise InputError(f"{folder}: there is no summary.csv here; a directory of packet-level results has one")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    needed = {"name", "topo", "cm", "args"}
    if rows and not needed <= set(rows[0]):
        raise InputError(f"{table}:1: column {sorted(needed - set(rows[0]))[0]} is missing")
    found = [Case(row["name"], folder, row) for row in rows if Path(row["name"]).match(pattern)]
    if not found:
        raise InputError(f"{table}: no case fits --cases {pattern}; there are {len(rows)}, such as {rows[0]['name']}")
    return found
