"""What may stand under `queue` and `recovery`: what ports do with what does not fit, and senders with what is lost."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from fabsim.scenario.keys.classes import TrafficClass
from fabsim.scenario.keys.fields import ALMOST, AutoData, AutoSpan, Count, Data, Many, Section, Text, like
from fabsim.scenario.keys.window import Share
from fabsim.units import Amount

Alpha = Annotated[float, Field(gt=0.0)]


class Ports(Section):
    """Ports that are not like the rest. `link` is written as for degraded links; of two entries the later holds."""

    link: Text = like(
        "leaf*->spine*",
        means='a link ("leaf0->spine3"), a pattern ("leaf*->spine0"), or a node ("spine0": all its links, both ways)',
    )
    ecn_low: Data | None = like(
        "80 kB",
        None,
        means="queue from which on some packets are marked; it does not shrink with the speed of the link",
        absent="as `queue` says",
        smooth=ALMOST,
    )
    ecn_high: Data | None = like(
        "320 kB",
        None,
        means="queue from which on all packets are marked; it does not shrink with the speed of the link",
        absent="as `queue` says",
        smooth=ALMOST,
    )


class SharedPorts(Ports):
    """The same, of ports that share a memory."""

    alpha: Alpha | None = like(
        "0.5",
        None,
        means="the part of the free memory that such a port may hold",
        absent="as `queue` says",
        smooth=ALMOST,
    )


class PfcPorts(Ports):
    """The same, of links that may be paused."""

    headroom: Data | None = like(
        "150 kB",
        None,
        means="bytes of such a link that a switch has room for beyond xoff",
        absent="as `queue` says",
        smooth=ALMOST,
    )


class Marking(Section):
    """What the queues of all kinds have: congestion marks on a ramp, and classes of traffic."""

    ecn_low: AutoData = like(
        "0.2 BDP",
        "auto",
        means="queue from which on some packets are marked",
        source="UEC specification 1.0",
        absent="0.2 of the buffer",
        smooth=ALMOST,
    )
    ecn_high: AutoData = like(
        "0.8 BDP",
        "auto",
        means="queue from which on all packets are marked",
        source="UEC specification 1.0",
        absent="0.8 of the buffer",
        smooth=ALMOST,
    )
    ecn_max: Share = like(
        "0.01",
        1.0,
        means="share of packets marked just below ecn_high; above it all are",
        source="UEC specification 1.0: a ramp up to all; DCQCN wants 0.01 (Zhu et al., SIGCOMM 2015)",
        smooth=ALMOST,
    )
    ecn_at: Literal["dequeue", "enqueue"] = like(
        "enqueue",
        "dequeue",
        means="when a packet is marked, by the queue of that moment; enqueue: the mark then waits with the packet",
        source="uet-htsim marks at dequeue",
    )
    ecn_last_hop: bool = like(
        "false", True, means="whether the ports towards hosts mark, too", source="UEC specification 1.0: all ports do"
    )
    classes: Many[TrafficClass] = like(
        "[{name: control, priority: 0}, {name: bulk, weight: 3}]",
        (),
        means="classes of traffic, each with a queue of its own at every port",
        source="ours: one queue a port",
    )


class Buffered(Marking):
    """A buffer for each port."""

    links: Many[Ports] = like(
        "[{link: leaf*->spine*, ecn_low: 80 kB, ecn_high: 320 kB}]",
        (),
        means="ports that are not like the rest; their buffers stand under fabric.degraded",
        source="ours: all are alike",
    )
    buffer: AutoData = like(
        "1 BDP",
        "auto",
        means="bytes that an output port holds; what is more is cut",
        source="UEC specification 1.0",
        absent="1 BDP of the longest route, in whole packets; of several sites, each its own, and borders that between",
        smooth=ALMOST,
    )


class Trim(Buffered):
    """A finite buffer that trims; `auto` is 1, 0.2 and 0.8 bandwidth-delay products."""

    origin = "UEC specification 1.0 (trimming, thresholds); Cassandras et al., IEEE TAC 48(5), 2003 (its derivative)"
    law = "fabsim.models.queue:TrimQueue"

    kind: Literal["trim"]
    granular: bool | Count | Literal["auto"] = like(
        "true",
        "auto",
        means="ports feel packets: where they arrive at random, a queue stands below saturation too (M/D/1; a number: "
        "packets of a round, where senders go through their paths in rounds, N D/D/1)",
        source="Pollaczek-Khinchine; Roberts and Virtamo, IEEE Trans. Commun. 39(2), 1991; held against uet-htsim's "
        "sprays, its switch adaptive, and its switch round robin on two tiers",
        absent="true for routing: {kind: switch_spray} and balancer: {kind: reps}, as many as entropies for routing: "
        "{kind: drawn}, else false: bytes are paced",
    )


class TailDrop(Buffered):
    """A finite buffer, and what does not fit is lost in silence; `recovery` says when it comes back."""

    origin = "RFC 7567, section 2 (tail drop); Cassandras et al., IEEE TAC 48(5), 2003 (its derivative)"
    law = "fabsim.models.taildrop:TailDrop"

    kind: Literal["tail_drop"]


class Shared(Marking):
    """A memory that the ports of a switch share; a port may hold a part of what is free, and loses what is more."""

    origin = "Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998"
    law = "fabsim.models.shared:SharedBuffer"

    kind: Literal["shared"]
    links: Many[SharedPorts] = like(
        "[{link: leaf*->spine*, alpha: 0.5}]",
        (),
        means="ports that are not like the rest",
        source="ours: all are alike",
    )
    memory: AutoData = like(
        "16 MB",
        "auto",
        means="bytes that all ports of a switch share",
        source="ours: as much as ports with buffers of their own would have",
        absent="1 BDP of the longest route for each port",
        smooth=ALMOST,
    )
    alpha: Alpha = like(
        "0.5",
        1.0,
        means="the part of the free memory that a port may hold",
        source="ours: half of the memory for a single busy port, a third each for two",
        smooth=ALMOST,
    )


class Pfc(Marking):
    """Priority flow control: a switch that holds too much of what came over a link has that link paused."""

    origin = "IEEE 802.1Qbb (pause, headroom); the limit cycle is ours"
    law = "fabsim.models.pfc:PfcQueue"

    kind: Literal["pfc"]
    links: Many[PfcPorts] = like(
        "[{link: leaf*->spine*, headroom: 150 kB}]",
        (),
        means="ports that are not like the rest",
        source="ours: all are alike",
    )
    xoff: Data = like(
        "100 kB",
        Amount(0.5, relative=True),
        means="bytes of one link that a switch holds before it pauses the link",
        source="ours: half a bandwidth-delay product",
        smooth=ALMOST,
    )
    xon: Data = like(
        "80 kB",
        Amount(0.4, relative=True),
        means="bytes of one link that a switch still holds when the link may send again",
        source="ours: a fifth below xoff",
        smooth=ALMOST,
    )
    headroom: AutoData = like(
        "150 kB",
        "auto",
        means="bytes of one link that a switch has room for beyond xoff; what is more is lost in silence",
        source="IEEE 802.1Qbb: what comes within the delay",
        absent="what the link carries within the delay, so that nothing is lost",
        smooth=ALMOST,
    )
    delay: AutoSpan = like(
        "1.5 us",
        "auto",
        means="time from the crossing of a threshold until what arrives over the link changes",
        source="IEEE 802.1Qbb: there and back, and a packet that is under way at either end",
        absent="twice the latency of the link, and two packets; never less than two steps",
        smooth=ALMOST,
    )


Queue = Annotated[Trim | TailDrop | Shared | Pfc, Field(discriminator="kind")]


def said_of_links(queue: Queue) -> tuple[str, ...]:
    """What `queue.links` may say of single ports under this kind of queue."""
    (entry, *_) = get_args(type(queue).model_fields["links"].annotation)
    return tuple(name for name in entry.model_fields if name != "link")


class Timed(Section):
    """What recoveries of all kinds have: a timeout with backoff."""

    timeout: AutoSpan = like(
        "100 us",
        "auto",
        means="time from a silent loss until the sender misses it; under go_back_n, with all behind it",
        source="ours: a round trip and the full buffers on its way",
        absent="10 base round trips of the longest route; with balancer: {kind: mrc}, its detect",
        smooth=ALMOST,
    )
    backoff: Annotated[float, Field(ge=1.0)] = like(
        "2",
        2.0,
        means="factor of the timeout after each timeout in a row, until something is acknowledged",
        source="RFC 6298, section 5",
        smooth=ALMOST,
    )
    most: Annotated[float, Field(ge=1.0)] = like(
        "64", 64.0, means="largest factor of the timeout", source="ours: six times twice as long", smooth=ALMOST
    )


class SelectiveRepeat(Timed):
    """After a timeout the sender repeats what was lost, and nothing else."""

    origin = "RFC 6298 (timeout and backoff); RFC 2018 (selective acknowledgement)"
    law = "fabsim.models.recovery:SelectiveRepeat"

    kind: Literal["selective_repeat"]


class GoBackN(Timed):
    """The receiver takes nothing out of order: what follows a loss in the window is sent again, too."""

    origin = "Bertsekas and Gallager, Data Networks, 2nd ed., section 2.4.2 (go back n); RFC 6298 (timeout and backoff)"
    law = "fabsim.models.go_back:GoBackN"

    kind: Literal["go_back_n"]


Recovery = Annotated[SelectiveRepeat | GoBackN, Field(discriminator="kind")]
