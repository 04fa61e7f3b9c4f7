"""A seeded hash of (flow, entropy value, switch), for the choice among equal next hops.

The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabsim.typing import Int

Word = NDArray[np.uint64]


@dataclass(frozen=True)
class Hash:
    """What the switches hash with.

    Attributes:
        salt: [S] salt of each switch; one value for all of them polarises: switches of the next tier then see only
            those flows that chose alike before, and choose alike again.
        seed: word that all keys share.
    """

    salt: Word
    seed: Word

    def pick(self, key: Word, switch: Int, choices: Int) -> Int:
        """[W] a number below `choices` for each key at a switch."""
        word = mix(key ^ self.salt[switch]) >> np.uint64(32)
        return (word % choices.astype(np.uint64)).astype(np.int64)

    def port(self, flow: Int, ports: Int) -> Int:
        """A port below `ports` for each flow: the sender's own choice, with a salt that no switch has."""
        word = mix(mix(mix(flow.astype(np.uint64) ^ self.seed)) ^ mix(~self.seed)) >> np.uint64(32)
        return (word % ports.astype(np.uint64)).astype(np.int64)

    def keys(self, flow: Int, entropy: Int) -> Word:
        """[W] key of each (flow, entropy value)."""
        return mix(mix(flow.astype(np.uint64) ^ self.seed) + entropy.astype(np.uint64))


def seeded_hash(switches: int, seed: int, polarised: bool = False) -> Hash:
    """The hash of a fabric: salts drawn per switch, or one for all."""
    words = np.random.default_rng(seed).integers(0, 2**64, switches + 1, dtype=np.uint64)
    salt = np.full(switches, words[0]) if polarised else words[1:]
    return Hash(salt, words[:1])


def mix(word: Word) -> Word:
    """Spread a 64-bit word over all its bits, one to one."""
    word = word + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
