"""What may stand under `routing`: which paths a flow takes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabsim.scenario.keys.fields import ALMOST, Count, Fraction, Section, Seed, Text, like

ENTROPIES = 128
"""Entropy values of a flow, where its routing draws none."""


class Ecmp(Section):
    """One path a flow, by a seeded hash at every switch; `polarised`: all switches use the same hash. With several
    queue pairs a flow has a path for each, and equal parts; its window is one, and it ends with its slowest part."""

    kind: Literal["ecmp"]
    queue_pairs: Count = like(
        "8",
        1,
        means="equal parts of a flow that are hashed each by itself",
        source="one connection; RoCE with 8 to 16 is common (Araujo et al., arXiv:2605.04333)",
    )
    polarised: bool = like(
        "false",
        False,
        means="all switches use the same hash, so that choices of one tier repeat in the next",
        source="ours: switches are salted",
    )
    seed: Seed | None = like("1", None, means="seed of the hash", absent="the scenario's seed")


class AllPaths(Section):
    """An even split over all shortest paths: the ideal spray."""

    kind: Literal["all"]


class Drawn(Section):
    """Spray over a finite set of entropy values, each hashed to a path."""

    kind: Literal["drawn"]
    entropies: Annotated[int, Field(ge=1, le=65536)] = like(
        "128",
        128,
        means="entropy values, of 16 bits, that a flow draws; each is hashed to a path",
        source="UEC specification 1.0 names 64 to 256; ours is in the middle",
    )
    seed: Seed | None = like("1", None, means="seed of the draw", absent="the scenario's seed")


class SwitchSpray(Section):
    """Every switch spreads packets over its next hops by itself, in turn or by the shortest queue. Its packets come
    to the next switch at random (see `queue.granular`): turns of one switch are not in step with those of the next."""

    kind: Literal["switch_spray"]
    adaptive: bool = like(
        "false",
        True,
        means="by the shortest queue: each switch fills its own links as fast as they empty; false: in turn, evenly",
        source="ours: what switches with adaptive routing do; held against uet-htsim's",
    )


class Explicit(Section):
    """Given paths: a CSV with the columns flow_id,src,dst,links (flows count from 1; links as "leaf0->spine3|...")."""

    kind: Literal["explicit"]
    file: Text = like(
        "paths.csv",
        means='CSV with the columns flow_id,src,dst,links; flows count from 1, links as "leaf0->spine3|..."',
    )


class Wcmp(Section):
    """All paths, weighted by the capacity of the slowest link between switches on each: none that is dead, less by one
    that is slow. Weights are those of the fabric as it begins; faults on the way take paths out, and leave the others
    in their proportions."""

    origin = "Zhou et al., WCMP: Weighted Cost Multipathing, EuroSys 2014"
    kind: Literal["wcmp"]


class GivenSplit(Section):
    """Shares of each flow on each path by a CSV file with the columns flow_id,link,pkts (how much of the flow goes over
    that link; every switch splits in that proportion)."""

    kind: Literal["split"]
    weights: Text = like("split.csv", means="CSV with the columns flow_id,link,pkts")


class Valiant(Section):
    """Paths of a dragonfly: minimal ones, and those through another group (Valiant)."""

    origin = "Valiant, SIAM J. Comput. 11, 1982; Kim, Dally, Scott, Abts, ISCA 2008"
    kind: Literal["valiant"]
    groups: Count | None = like(
        "4", None, means="intermediate groups of each flow, drawn by the seed", absent="each other group"
    )
    minimal: Fraction = like(
        "0.5", 0.5, means="share of the bytes on minimal paths", source="ours: half and half", smooth=ALMOST
    )
    seed: Seed | None = like("1", None, means="seed of the draw", absent="the scenario's seed")


Routing = Annotated[
    Ecmp | AllPaths | Wcmp | Drawn | SwitchSpray | Valiant | Explicit | GivenSplit, Field(discriminator="kind")
]
