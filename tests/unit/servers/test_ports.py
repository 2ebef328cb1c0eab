"""Free ports: different ones, really free, out of the way of outgoing connections."""

from __future__ import annotations

import socket

import pytest

from tests.integration.servers.ports import below_ephemeral, free_ports


def test_ports_differ_and_can_be_bound() -> None:
    ports = free_ports(4)
    assert len(set(ports)) == 4
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        (free,) = free_ports(1)
        assert free_ports(1, candidates=[port, free]) == (free,)


def test_a_candidate_is_given_once() -> None:
    (free,) = free_ports(1)
    with pytest.raises(OSError, match="only 1 of 2 ports are free"):
        free_ports(2, candidates=[free, free])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("32768\t60999\n", range(15_000, 32_768)), ("1024 65535", range(15_000, 65_536))],
    ids=["the kernel's default", "no room below"],
)
def test_stays_below_the_ephemeral_range(text: str, expected: range) -> None:
    assert below_ephemeral(text) == expected
