"""Options of the packet simulator (uet-htsim) that a case was run with, as far as they matter here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fabsim.errors import InputError

T = TypeVar("T", int, float)

READ = {
    "mtu", "trimsize", "q", "cwnd", "linkspeed", "paths", "failed", "strat", "load_balancing_algo",
    "ecn", "target_q_delay", "qa_gate", "pfc_thresholds", "enable_accurate_base_rtt",
    "sender_cc_algo", "sender_cc_only", "sender_cc", "receiver_cc_only", "receiver_cc",
}  # fmt: skip
WITHOUT_EFFECT = {
    "end", "seed", "topo", "tm", "tiers", "nodes", "o", "log", "logtime", "logtime_us", "debug",
}  # fmt: skip
"""What is written, and how long is waited."""


@dataclass(frozen=True)
class Options:
    """Values by option, without the dash.

    Attributes:
        values: the words behind each option; none behind a switch.
        place: what errors begin with: the file and the case.
    """

    values: dict[str, list[str]]
    place: str

    @classmethod
    def parse(cls, line: str, place: str) -> Options:
        """From a command line. Raises InputError for a word before the first option, and numbers that will not do."""
        values: dict[str, list[str]] = {}
        words: list[str] | None = None
        for word in line.split():
            if word.startswith("-"):
                words = values[word.lstrip("-")] = []
            elif words is None:
                raise InputError(f"{place}: args: {word!r} stands before the first option; options begin with a dash")
            else:
                words.append(word)
        options = cls(values, place)
        _ = (
            options.mtu,
            options.ecn,
            options.pauses,
            options.entropies,
            [options.real(name, 1) for name in ("trimsize", "q", "cwnd", "linkspeed", "target_q_delay")],
        )
        return options

    def real(self, name: str, default: float) -> float:
        """A number above 0."""
        return self._number(name, default, float, above=0.0)

    def whole(self, name: str, default: int, least: int = 1) -> int:
        """A whole number, at least `least`."""
        return self._number(name, default, int, above=least - 1)

    def word(self, name: str, default: str) -> str:
        """A word."""
        found = self.values.get(name, [default])
        if len(found) != 1:
            raise InputError(f"{self.place}: args: -{name}: one value must follow, {len(found)} given")
        return found[0]

    def _number(self, name: str, default: T, kind: Callable[[str], T], above: float) -> T:
        if name not in self.values:
            return default
        text = self.word(name, "")
        try:
            value = kind(text)
        except ValueError:
            raise InputError(f"{self.place}: args: -{name}: {text!r} is no number that will do") from None
        if not value > above:
            raise InputError(f"{self.place}: args: -{name}: {text} given, must be above {above:g}")
        return value

    @property
    def mtu(self) -> float:
        """Bytes of a full packet; 64 of them are header."""
        mtu = self.real("mtu", 4150)
        if mtu <= 64:
            raise InputError(f"{self.place}: args: -mtu: {mtu:g} given, must be more than the header of 64 bytes")
        return mtu

    @property
    def congestion_control(self) -> str:
        """const, nscc, dctcp, rccc or a pair of them; roce: line rate, over pauses. The simulator's default is nscc."""
        if self.pauses is not None:
            return "roce"
        if "receiver_cc_only" in self.values:
            return "rccc"
        algorithm = self.word("sender_cc_algo", "nscc")
        name = "const" if algorithm == "constant" else algorithm
        return f"{name} with rccc" if "receiver_cc" in self.values else name

    @property
    def balancer(self) -> str:
        """ecmp (one path a flow), oblivious, mixed, bitmap, reps; or what the switches do, as it is called there."""
        strategy = self.word("strat", "ecmp_host")
        if strategy != "ecmp_host":
            return strategy
        return "ecmp" if self.entropies == 1 else self.word("load_balancing_algo", "mixed")

    @property
    def ecn(self) -> tuple[float, float] | None:
        """Marking thresholds in packets, where they are given."""
        return self._two("ecn")

    @property
    def pauses(self) -> tuple[float, float] | None:
        """Thresholds of pauses in packets (xon, xoff), where they are given."""
        return self._two("pfc_thresholds")

    def _two(self, name: str) -> tuple[float, float] | None:
        words = self.values.get(name)
        if words is None:
            return None
        try:
            low, high = (float(word) for word in words)
        except ValueError:
            text = f"two numbers must follow, {' '.join(words)!r} given"
            raise InputError(f"{self.place}: args: -{name}: {text}") from None
        if not 0 <= low <= high:
            raise InputError(f"{self.place}: args: -{name}: {low:g} {high:g} given, must be 0 or more and in order")
        return low, high

    @property
    def entropies(self) -> int:
        """Entropy values of a flow."""
        return self.whole("paths", 64)

    @property
    def unknown(self) -> str:
        """The first option that would change the outcome and is not modelled; empty if there is none."""
        return next((name for name in self.values if name not in READ | WITHOUT_EFFECT), "")
