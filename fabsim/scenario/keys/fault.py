"""What may stand under `faults`: what happens to links while a run goes on."""

from __future__ import annotations

from fabsim.scenario.keys.fields import ALMOST, Count, Fraction, Section, Span, Text, Time, like


class Flap(Section):
    """A fault that comes and goes: it holds for the first `down` of each `every`."""

    every: Span = like("50 us", means="time from one beginning to the next", smooth=ALMOST)
    down: Span = like("10 us", means="time for which it holds, each time", smooth=ALMOST)


class LinkFault(Section):
    """Something that happens to links, at a time. `link` is a name, a pattern or a node, as in `fabric.degraded`: a
    switch ("spine0") dies with all its links, a port of a NIC is "h0<->p2.leaf*", a plane "p2.*"."""

    link: Text = like(
        "leaf0<->spine3",
        means='a link ("leaf0->spine3"), a cable ("leaf0<->spine3"), a pattern ("leaf*->spine0"), or a node ("spine0")',
    )
    at: Time = like("100 us", 0.0, means="when it begins", source="ours: with the run", smooth=ALMOST)
    until: Span | None = like("300 us", None, means="when it ends", absent="it never ends", smooth=ALMOST)
    speed: Fraction | None = like(
        "0.25",
        None,
        means="the part of its rate that is left; 0: down. Queue and thresholds stay as they are, while those of "
        "fabric.degraded shrink with its speed",
        absent="0 with `flap`, else as it was",
        smooth=ALMOST,
    )
    loss: Fraction | None = like(
        "0.001",
        None,
        means="share of all packets that the link loses at random, in silence; `recovery` brings them back",
        absent="as it was",
        smooth=ALMOST,
    )
    flap: Flap | None = like("{every: 50 us, down: 10 us}", None)
    react: Time | None = like(
        "50 ms",
        None,
        means="time after which senders know of this one, or of its end",
        absent="50 ms where all of its links lead from site to site (ITU-T G.841, protection switching), else `react` "
        "of the scenario",
        smooth=ALMOST,
    )
    count: Count | None = like(
        "4",
        None,
        means="so many of the cables that fit, drawn by the scenario's seed, both ways",
        absent="all that fit",
    )

    @property
    def left(self) -> float:
        """Share of the rate while it holds."""
        return (0.0 if self.flap else 1.0) if self.speed is None else self.speed
