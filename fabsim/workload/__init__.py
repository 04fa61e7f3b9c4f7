"""Traffic: who sends how much to whom, when, and after whom."""

from fabsim.workload.assemble import assemble, check, merge
from fabsim.workload.collectives import ring_coupled, ring_steps
from fabsim.workload.flows import Flows
from fabsim.workload.listed import Row, listed
from fabsim.workload.packet import Packet
from fabsim.workload.sites import incast_from, permutation_across
from fabsim.workload.traffic import all_to_all, incast, permutation, shift

__all__ = [
    "Flows",
    "Packet",
    "Row",
    "all_to_all",
    "assemble",
    "check",
    "incast",
    "incast_from",
    "listed",
    "merge",
    "permutation",
    "permutation_across",
    "ring_coupled",
    "ring_steps",
    "shift",
]
