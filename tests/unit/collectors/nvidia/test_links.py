"""NVLink link by link: what each says, what the sums are, and what is at the other end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.nvidia.links import link_fields
from collectors.nvidia.reply import Failed, Replies
from schemas.builder import SampleBuilder
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from tests.fakes.nvml.fixtures import fake_nvml_library
from tests.unit.collectors.nvidia.rig import Rig, absent

__all__ = ["fake_nvml_library"]
UP: Replies = {
    "state": 1,
    "replay": 4,
    "recovery": 2,
    "crc": 1,
    "tx_kibibytes": 3,
    "rx_kibibytes": 5,
    "version": 6,
    "speed_megabytes": 26_562,
}


def made(*links: Replies) -> tuple[v1.DeviceSample, list[v1.InterconnectLink]]:
    builder = SampleBuilder("nvidia:x")
    messages = link_fields(builder, len(links), list(links))
    return builder.build(), messages


def test_a_link_of_nvlink_4() -> None:
    _, (link,) = made(UP | {"remote_bdf": "00000000:05:00.0", "remote_type": 2})
    assert link == v1.InterconnectLink(
        index=0,
        active=True,
        tx_bytes=3072,
        rx_bytes=5120,
        replay_errors=4,
        recovery_errors=2,
        crc_errors=1,
        remote_bdf="0000:05:00.0",
        remote_kind=v1.DeviceKind.DEVICE_KIND_SWITCH,
        version=6,
        speed_bytes_per_second=26_562e6,
    )


def test_a_link_of_nvlink_5() -> None:
    newer: Replies = {
        "tx_bytes": 70,
        "rx_bytes": 80,
        "recoveries": 3,
        "receive": 1,
        "malformed": 2,
        "overrun": 4,
        "effective": 9,
        "symbol": 8,
    }
    end: Replies = {"state": 1, "failed_recoveries": 5, "remote_bdf": "00000000:00:00.0", "remote_type": 2}
    _, (link,) = made(end | newer)
    assert (link.tx_bytes, link.rx_bytes, link.recovery_errors, link.failed_recoveries) == (70, 80, 3, 5)
    assert (link.receive_errors, link.effective_errors, link.symbol_errors) == (7, 9, 8)
    assert link.remote_bdf == ""
    assert not link.HasField("replay_errors")
    assert not link.HasField("crc_errors")


def test_sums_are_over_all_links() -> None:
    sample, _ = made(UP, UP, UP | {"state": 0})
    assert (sample.interconnect_links_active, sample.interconnect_errors) == (2, 21)
    assert (sample.interconnect_replay_errors, sample.interconnect_recovery_errors, sample.interconnect_crc_errors) == (12, 6, 3)


def test_older_calls_count_crc_in_two_parts() -> None:
    sample, (link,) = made({"state": 1, "replay": 1, "recovery": 0, "crc_flit": 5, "crc_data": 6, "crc": Failed(3)})
    assert (sample.interconnect_crc_errors, link.crc_errors) == (11, 11)


def test_a_sum_that_lacks_a_link_is_none() -> None:
    sample, links = made(UP, UP | {"replay": Failed(999)})
    assert absent(sample) == {"interconnect_replay_errors": "error", "interconnect_errors": "error"}
    assert [link.HasField("replay_errors") for link in links] == [True, False]


def test_a_state_that_cannot_be_read_leaves_the_count_open() -> None:
    sample, _ = made(UP, UP | {"state": Failed(999)})
    assert absent(sample) == {"interconnect_links_active": "error"}


def test_links_that_all_are_not_supported_are_not_zero() -> None:
    nothing: Replies = {"state": Failed(3)}
    sample, _ = made(nothing, nothing, nothing)
    assert set(absent(sample).values()) == {"not_supported"}
    assert "interconnect_links_active" in absent(sample)


@pytest.fixture
def board(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, int], Rig]]:
    rigs: list[Rig] = []

    def make(profile: str, count: int) -> Rig:
        state = nvml.State(tmp_path / "nvml.json", profile, count=count)
        fixtures.loaded(fake_nvml_library, monkeypatch, state)
        rigs.append(Rig(state))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.plugin.close()
    fixtures.forget()


def test_direct_links_between_two_cards_are_counted(board: Callable[[str, int], Rig]) -> None:
    rig = board("a100", 2)
    other = rig.state.value(1, "bus_id")
    for link in range(4):
        rig.state.device(0).link(link, remote_bus_id=other, remote_type=0)
    first, second = rig.read()
    assert [(peer.uid, peer.links) for peer in first.info.peers] == [(second.uid, 4)]
    assert [(peer.uid, peer.links) for peer in second.info.peers] == [(first.uid, 0)]


def test_the_links_of_a_rack_scale_card_count_in_bytes(board: Callable[[str, int], Rig]) -> None:
    card = board("gb200", 1).card()
    assert len(card.links) == 18
    assert card.links[3].tx_bytes == 550_123_456_789
    assert card.interconnect_tx_bytes == 18 * 550_123_456_789
    assert absent(card)["interconnect_crc_errors"] == "not_supported"


def test_links_are_sent_with_the_slow_fields_only(board: Callable[[str, int], Rig]) -> None:
    rig = board("h100", 1)
    assert len(rig.read()[0].links) == 18
    assert len(rig.read(slow=False)[0].links) == 0
