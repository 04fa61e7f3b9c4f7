"""What may stand under `transport`: laws that keep a window."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.keys.fields import ALMOST, AutoSpan, Data, Section, Size, Time, like
from fabsim.units import Amount

Gain = Annotated[float, Field(ge=0.0)]
Positive = Annotated[float, Field(gt=0.0)]
Share = Annotated[float, Field(gt=0.0, le=1.0)]


def first_window(source: str) -> Data:
    """The key of a window at the start."""
    return like("1 BDP", Amount(1.0, relative=True), means="window at the start", source=source, smooth=ALMOST)


def largest_window(source: str, products: float) -> Data:
    """The key of a largest window."""
    return like(
        f"{products:g} BDP", Amount(products, relative=True), means="largest window", source=source, smooth=ALMOST
    )


class Dctcp(Section):
    """A window cut in proportion to the share of marked packets. Let `queue.ecn_low` and `ecn_high` be (nearly) one."""

    origin = "Alizadeh et al., SIGCOMM 2010; Alizadeh, Javanmard, Prabhakar, SIGMETRICS 2011 (fluid model)"
    law = "fabsim.models.dctcp:Dctcp"

    kind: Literal["dctcp"]
    first: Data = first_window("ours: slow start is left out")
    largest: Data = largest_window("ours", 2.0)
    gain: Share = like(
        "0.0625",
        0.0625,
        means="weight of one round trip in the smoothed share of marks",
        source="Alizadeh et al., SIGCOMM 2010: 1/16",
        smooth=ALMOST,
    )
    increase: Gain = like(
        "1",
        1.0,
        means="packets by which the window grows a round trip",
        source="Alizadeh et al., SIGCOMM 2010, as TCP",
        smooth=ALMOST,
    )


class Swift(Section):
    """A window that aims at an end-to-end delay, which grows with the hops and as the window shrinks."""

    origin = "Kumar et al., Swift: Delay is Simple and Effective, SIGCOMM 2020; uet-htsim for what it leaves open"
    law = "fabsim.models.swift:Swift"

    kind: Literal["swift"]
    first: Data = first_window("ours")
    base: AutoSpan = like(
        "20 us",
        "auto",
        means="target of the round trip for a large window",
        source="ours; 25 us in the paper, for its machines",
        absent="1.25 base round trips of the longest route",
        smooth=ALMOST,
    )
    per_hop: Time = like(
        "1 us",
        0.0,
        means="more target for each switch port on the path",
        source="ours: none, as `base` is that of the longest route",
        smooth=ALMOST,
    )
    range: AutoSpan = like(
        "60 us",
        "auto",
        means="the most that a small window adds to the target",
        source="uet-htsim",
        absent="5 base round trips of the longest route",
        smooth=ALMOST,
    )
    least: Positive = like(
        "0.1",
        0.1,
        means="packets; smallest window, which adds all of `range` to the target",
        source="Kumar et al., SIGCOMM 2020; uet-htsim",
        smooth=ALMOST,
    )
    most: Positive = like(
        "100",
        100.0,
        means="packets; the window from which on nothing is added to the target",
        source="Kumar et al., SIGCOMM 2020; uet-htsim",
        smooth=ALMOST,
    )
    largest: Data = largest_window("ours", 2.0)
    increase: Gain = like(
        "1",
        1.0,
        means="packets by which the window grows a round trip, below the target",
        source="uet-htsim",
        smooth=ALMOST,
    )
    beta: Gain = like(
        "0.8",
        0.8,
        means="strength of the decrease, by how far the delay is above the target",
        source="uet-htsim",
        smooth=ALMOST,
    )
    deepest: Share = like(
        "0.5",
        0.5,
        means="largest part that one decrease takes",
        source="uet-htsim",
        smooth=ALMOST,
    )


class Hpcc(Section):
    """A window that aims at a utilisation which switches report (in-band telemetry)."""

    origin = "Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019"
    law = "fabsim.models.hpcc:Hpcc"

    kind: Literal["hpcc"]
    eta: Share = like(
        "0.95", 0.95, means="utilisation of a port that is aimed at", source="Li et al., SIGCOMM 2019", smooth=ALMOST
    )
    increase: Size = like(
        "80 B", 80.0, means="additive increase of the window", source="Li et al., SIGCOMM 2019", smooth=ALMOST
    )
    stages: Gain = like(
        "5",
        5.0,
        means="round trips of additive increase in a row before the load is followed upwards",
        source="Li et al., SIGCOMM 2019",
        smooth="jumps",
    )


class PowerTcp(Section):
    """A window that follows the power of the most loaded port: its rate times what waits and is on the wire."""

    origin = "Addanki, Michel, Schmid, PowerTCP: Pushing the Performance Limits of Datacenter Networks, NSDI 2022"
    law = "fabsim.models.powertcp:PowerTcp"

    kind: Literal["powertcp"]
    gamma: Share = like(
        "0.9", 0.9, means="weight of an acknowledged packet", source="Addanki et al., NSDI 2022", smooth=ALMOST
    )
    beta: Data = like(
        "0.01 BDP",
        Amount(0.01, relative=True),
        means="additive increase of the window, and what a flow keeps waiting",
        source="ours; Addanki et al. divide a product by the flows that are expected at a host",
        smooth=ALMOST,
    )


class Credit(Section):
    """Credit that receivers give."""

    origin = "UEC specification 1.0, receiver-credit congestion control; uet-htsim; EQDS: Olteanu et al., NSDI 2022"

    first: Data = like(
        "1.5 BDP",
        Amount(1.5, relative=True),
        means="credit at the start that nobody gave, void when the receiver is first heard of",
        source="UEC specification 1.0; uet-htsim",
        smooth=ALMOST,
    )
    pace: Share = like(
        "0.99", 0.99, means="of the receiver's rate, at which credit is given", source="uet-htsim", smooth=ALMOST
    )
    turn: Positive = like(
        "4", 4.0, means="packets of credit that are given at a time", source="UEC specification 1.0", smooth=ALMOST
    )


class Rccc(Credit):
    """The receiver-side congestion control of Ultra Ethernet: a sender sends what it was given credit for."""

    law = "fabsim.models.rccc:Rccc"

    kind: Literal["rccc"]


class RcccOversubscribed(Credit):
    """The same over an oversubscribed fabric: receivers give credit more slowly where packets come marked, or trimmed
    before the last hop. Let the last hop set no marks (`queue.ecn_last_hop: false`)."""

    law = "fabsim.models.rccc_oversubscribed:RcccOversubscribed"

    kind: Literal["rccc_oversubscribed"]
    least: Share = like(
        "0.225",
        0.225,
        means="smallest part of the pace",
        source="uet-htsim: 0.9 over the oversubscription; this is for 4 to 1",
        smooth=ALMOST,
    )
    target: Share = like(
        "0.3", 0.3, means="smoothed share of marks above which the pace is cut", source="uet-htsim", smooth=ALMOST
    )
    increase: Gain = like(
        "0.01",
        0.01,
        means="part of the pace that is added at a time; 2^n as much where nothing is marked n changes after a cut",
        source="uet-htsim",
        smooth=ALMOST,
    )
    decrease: Gain = like(
        "0.5", 0.5, means="strength of a cut, by what the marks are above the target", source="uet-htsim", smooth=ALMOST
    )
    smoothing: Share = like(
        "0.5", 0.5, means="weight of the last share of marks in the smoothed one", source="uet-htsim", smooth=ALMOST
    )
