"""Quantities: what is read, what is refused, and that what is written reads back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabsim import units
from fabsim.units import Amount, UnitError


@pytest.mark.parametrize(
    ("text", "bytes_per_second"),
    [
        ("400 Gbps", 50e9), ("400Gbps", 50e9), ("400 Gb/s", 50e9), ("400 Gbit/s", 50e9), ("50 GB/s", 50e9),
        ("1.6 Tbps", 200e9), ("100 Mb/s", 12.5e6), ("8 bps", 1.0), ("1e3 B/s", 1e3), ("1 GBps", 1e9),
        ("1e2 Gbps", 12.5e9),
    ],
)  # fmt: skip
def test_rates(text: str, bytes_per_second: float) -> None:
    assert units.rate(text) == pytest.approx(bytes_per_second, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 us", 1e-6), ("1us", 1e-6), ("1 µs", 1e-6), ("1 μs", 1e-6), ("500 ns", 500e-9), ("2 ms", 2e-3), ("3 s", 3.0),
        ("1e-6 s", 1e-6), ("2 min", 120.0), ("1 h", 3600.0), (".5 us", 5e-7), ("0 ns", 0.0), ("250 ps", 2.5e-10),
    ],
)  # fmt: skip
def test_times(text: str, seconds: float) -> None:
    assert units.time(text) == pytest.approx(seconds, rel=1e-15)
    assert units.quantity(text) == (pytest.approx(seconds, rel=1e-15), "s")
    if seconds <= 1.0:
        assert units.latency(text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("16 KiB", 16384), ("16 kB", 16000), ("16 KB", 16000), ("9 MiB", 9 * 2**20), ("2 MB", 2e6), ("4150 B", 4150),
        ("16 Kib", 2048), ("1 GiB", 2**30), ("1_000 B", 1000), ("8 bits", 1), ("1500 bytes", 1500),
        ("1e3 kB", 1e6), ("1_0e-1KiB", 1024),
    ],
)  # fmt: skip
def test_sizes(text: str, count: float) -> None:
    assert units.size(text) == count


def test_a_length_of_fibre_is_a_latency() -> None:
    assert units.latency("20 km") == pytest.approx(98e-6, rel=1e-12)
    assert units.latency("5 m") == pytest.approx(24.5e-9, rel=1e-12)


def test_an_amount_is_bytes_or_products() -> None:
    assert units.amount("1.5 BDP") == Amount(1.5, relative=True)
    assert units.amount("1.5 BDP").bytes(400_000) == 600_000
    assert units.amount("64 KiB").bytes(400_000) == 65536
    assert str(units.amount("1.5 BDP")) == "1.5 BDP"


@pytest.mark.parametrize(
    ("dimension", "text", "says"),
    [
        (units.RATE, "400 ms", "is a time"),
        (units.RATE, "400", "has no unit"),
        (units.RATE, 400, "has no unit"),
        (units.RATE, "400 Gbp", "unknown unit 'Gbp'"),
        (units.RATE, "400 gbps", "unknown unit 'gbps'"),
        (units.RATE, "1 GHz", "unknown unit 'GHz'"),
        (units.RATE, "100 G", "no unit"),
        (units.TIME, "5 m", "is a length"),
        (units.TIME, "20 km", "is a length"),
        (units.TIME, "nan us", "not a finite number"),
        (units.TIME, "inf s", "not a finite number"),
        (units.TIME, "-1 us", "must not be negative"),
        (units.TIME, "1,5 us", "cannot be read"),
        (units.TIME, True, "true has no unit"),
        (units.TIME, None, "nothing has no unit"),
        (units.TIME, "", "cannot be read"),
        (units.TIME, "soon", "cannot be read"),
        (units.SIZE, "1e400 B", "not a finite number"),
        (units.SIZE, "0x10 B", "cannot be read"),
        (units.SIZE, "1.5 BDP", "multiple of the bandwidth-delay product"),
        (units.AMOUNT, "1.5 MTU", "unknown unit 'MTU'"),
        (units.AMOUNT, 1.5, "has no unit"),
    ],
)
def test_refusals_say_what_would_do(dimension: units.Dimension, text: object, says: str) -> None:
    with pytest.raises(UnitError) as error:
        dimension.parse(text)
    assert says in str(error.value)
    assert dimension.example in str(error.value)
    assert "\n" not in str(error.value)


def test_numbers_for_people() -> None:
    assert units.show_time(8.33712e-6) == "8.337 us"
    assert units.show_time(0.0) == "0 s"
    assert units.show_time(math.inf) == "unfinished"
    assert units.show_time(0.9999999999e-6) == "1 us"
    assert units.show_size(419150) == "419.1 kB"
    assert units.show_rate(50e9) == "400 Gbps"


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_what_is_shown_reads_back_to_four_digits(value: float) -> None:
    assert units.size(units.show_size(value)) == pytest.approx(value, rel=6e-4)
    assert units.rate(units.show_rate(value)) == pytest.approx(value, rel=6e-4)
    seconds = min(value, 1e9)  # more is refused
    assert units.time(units.show_time(seconds)) == pytest.approx(seconds, rel=6e-4)


@pytest.mark.parametrize(
    ("dimension", "text", "most"),
    [
        (units.TIME, "1e30 s", "1000000 h"),
        (units.LATENCY, "1e9 km", "1 s"),
        (units.SIZE, "2 PB", "1 PB"),
        (units.AMOUNT, "1e20 BDP", "1 PB"),
        (units.RATE, "9 Pbps", "1 PB/s"),
    ],
)
def test_what_no_network_has_is_refused(dimension: units.Dimension, text: str, most: str) -> None:
    assert dimension.parse(most) == dimension.bound
    if text == "9 Pbps":  # 1.125 PB/s
        assert dimension.bound < 9e15 / 8
    with pytest.raises(units.UnitError, match=f"more than {most}: '{text}'; write it like"):
        dimension.parse(text)
