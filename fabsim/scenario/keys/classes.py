"""What may stand under `queue.classes`, and the class of an entry of the traffic."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, create_model

from fabsim.scenario.keys.fields import ALMOST, AutoData, Data, Rate, Section, Text, like


class Tokens(Section):
    """Tokens come at a rate, up to a burst, and each byte takes one."""

    origin = "Cruz, IEEE Transactions on Information Theory 37(1), 1991; RFC 2697 (token bucket)"
    law = "fabsim.models.bucket:Bucket"

    rate: Rate = like("100 Gbps", means="tokens a second: what passes in the long run", smooth=ALMOST)
    burst: Data = like("1 MB", means="tokens that a full bucket holds: what passes at once", smooth=ALMOST)
    links: Text | None = like(
        "leaf*->spine*",
        None,
        means="the links at whose tails the buckets stand, each with its own; written as for degraded links",
        absent="all links, those of senders too where the bucket shapes",
    )


Weight = Annotated[float, Field(gt=0.0)]
Level = Annotated[int, Field(ge=0)]


class TrafficClass(Section):
    """A class of traffic, with a queue of its own at every port, the senders' too; pfc pauses it by itself, and to a
    shared memory it is a port of its own."""

    origin = (
        "IEEE 802.1Q, clause 8.6.8 (strict priority, enhanced transmission selection); Parekh and Gallager, IEEE/ACM "
        "Transactions on Networking 1(3), 1993 (sharing by weight, as a fluid)"
    )
    law = "fabsim.models.classes:Classes"

    name: Text = like("control", means="its name; entries of the traffic say `class: control`")
    priority: Level = like(
        "0",
        1,
        means="levels with a lower number are served first, and leave the rest to the next",
        source="ours: one level, so that 0 is ahead of all that say nothing",
    )
    weight: Weight = like(
        "3",
        1.0,
        means="share of what its level has, while all classes of the level have something to send",
        source="ours: equal shares",
        smooth=ALMOST,
    )
    buffer: AutoData = like(
        "1 BDP",
        "auto",
        means="bytes that its queue holds",
        source="ours: what a port with one queue has",
        absent="as much as queue.buffer, for each class",
        smooth=ALMOST,
    )
    ecn_low: AutoData = like(
        "0.2 BDP",
        "auto",
        means="queue of this class from which on some of its packets are marked",
        source="UEC specification 1.0",
        absent="0.2 of its own buffer where that is given, else queue.ecn_low",
        smooth=ALMOST,
    )
    ecn_high: AutoData = like(
        "0.8 BDP",
        "auto",
        means="queue of this class from which on all of its packets are marked",
        source="UEC specification 1.0",
        absent="0.8 of its own buffer where that is given, else queue.ecn_high",
        smooth=ALMOST,
    )
    shape: Tokens | None = like(
        "{rate: 100 Gbps, burst: 1 MB}", None, means="what has no token waits", absent="nothing holds it back"
    )
    police: Tokens | None = like(
        "{rate: 100 Gbps, burst: 1 MB}",
        None,
        means="what comes to a switch port without a token is cut, as by a full queue",
        absent="all is let in",
    )


_NAME: Any = Text
_CLASS: dict[str, Any] = {
    "class": (
        _NAME | None,
        like("control", None, means="the class of queue.classes that its flows are of", absent="the last of these"),
    )
}
Classed: type[Section] = create_model("Classed", __base__=Section, __module__=__name__, **_CLASS)
"""What has a class. Its one field is a word of the language, and cannot be declared in the usual way."""
