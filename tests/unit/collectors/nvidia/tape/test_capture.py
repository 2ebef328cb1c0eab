"""What is captured is read back to the same samples, names nobody's hardware, and a bundle that does not fit says so."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest
from google.protobuf import json_format

from collectors.contract import Env, Reading, Ready
from collectors.nvidia.plugin import create
from collectors.nvidia.tape.bundle import BadBundle, read
from collectors.nvidia.tape.capture import NothingToCapture, Summary, capture
from collectors.nvidia.tape.plugin import Replay
from schemas.identity import NodeRef
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library, forget, loaded

__all__ = ["fake_nvml", "fake_nvml_library"]
ENV = Env(NodeRef("c", "secret-host"), "boot", "0.1", 10**9)
TICKS = 7


def captured(path: Path, state: nvml.State, *, redact: bool = True, ticks: int = TICKS) -> Summary:
    """A capture in which the temperature and one card's health change between ticks."""
    step = iter(range(100))

    def move(_: float) -> None:
        now = next(step)
        state.set(every__temperature_celsius=40 + now)
        if now == 3:
            state.fail("nvmlDeviceGetFanSpeed", 999, device=1)

    return capture(path, {}, ENV, ticks=ticks, interval_seconds=0, redact=redact, sleep=move)


def replayed(path: Path, **settings: object) -> Replay:
    forget()
    plugin = create({"replay": str(path), "replay_times": "original", **settings}, ENV)
    assert isinstance(plugin, Replay)
    return plugin


def readings(plugin: Replay, ticks: int) -> list[Reading]:
    assert isinstance(plugin.probe(), Ready)
    return [plugin.read(frozenset({"fast"}), time.monotonic() + 60) for _ in range(ticks)]


def as_dict(reading: Reading) -> dict[str, object]:
    part = reading.samples[0]
    batch = v1.SampleBatch(driver_version=part.driver_version, devices=part.samples)
    return json_format.MessageToDict(batch, preserving_proto_field_name=True)


@pytest.mark.parametrize("profile", ["h100", "h100-mig", "a100", "l40s", "gb200", "gb10", "t4"])
def test_a_bundle_is_read_back_to_the_same_samples(
    profile: str, tmp_path: Path, fake_nvml_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = nvml.State(tmp_path / "state", profile, count=2)
    loaded(fake_nvml_library, monkeypatch, state)
    bundle = tmp_path / "bundle.gz"
    summary = captured(bundle, state)
    assert summary.devices >= 2
    assert summary.calls > 100
    _, ticks = read(bundle)
    plugin = replayed(bundle)
    try:
        for reading, tick in zip(readings(plugin, TICKS), ticks, strict=True):
            assert as_dict(reading) == tick.samples
            assert reading.samples[0].taken_at_ns == tick.taken_at_ns
        assert plugin.player.unknown == {}
    finally:
        plugin.close()
    temperatures = {json.dumps(tick.samples["devices"][0].get("temperature_celsius")) for tick in ticks}
    assert len(temperatures) > 2, "the capture did not see the values change"


def test_serials_and_uuids_are_replaced_everywhere_and_alike(tmp_path: Path, fake_nvml: nvml.State) -> None:
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    secrets = [pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetSerial(handle)]
    pynvml.nvmlShutdown()
    bundle, open_one = tmp_path / "b.gz", tmp_path / "open.gz"
    captured(bundle, fake_nvml)
    captured(open_one, fake_nvml, redact=False)
    text, plain = gzip.decompress(bundle.read_bytes()).decode(), gzip.decompress(open_one.read_bytes()).decode()
    for secret in secrets:
        bare = str(secret).removeprefix("GPU-")
        assert bare in plain
        assert bare.encode().hex() in plain
        assert bare not in text
        assert bare.encode().hex() not in text
    assert "secret-host" not in text + plain
    assert bundle.stat().st_mode & 0o777 == 0o600
    again = tmp_path / "again.gz"
    captured(again, fake_nvml)
    uids = [read(path)[1][0].samples["devices"][0]["uid"] for path in (bundle, again)]
    assert uids[0].startswith("nvidia:GPU-")
    assert uids[0] != uids[1], "two captures of one card must not show that it is one"


def test_a_replay_starts_again_as_a_new_epoch(tmp_path: Path, fake_nvml: nvml.State) -> None:
    bundle = tmp_path / "b.gz"
    captured(bundle, fake_nvml, ticks=2)
    plugin = replayed(bundle)
    found = readings(plugin, 5)
    plugin.close()
    epochs = [reading.samples[0].driver_epoch for reading in found]
    assert [epoch - epochs[0] for epoch in epochs] == [0, 0, 1, 1, 2]
    assert as_dict(found[0]) == as_dict(found[2]) == as_dict(found[4])


def test_without_a_driver_nothing_is_written(tmp_path: Path, fake_nvml: nvml.State) -> None:
    fake_nvml.fail("nvmlInitWithFlags", 9)
    with pytest.raises(NothingToCapture, match="modprobe nvidia"):
        captured(tmp_path / "b.gz", fake_nvml)
    assert not list(tmp_path.glob("b.gz*"))


def test_a_bundle_makes_nobody_fetch_an_address_or_look_at_processes(tmp_path: Path, fake_nvml: nvml.State) -> None:
    """Users send bundles: what one says of settings is not to be trusted, and what it says of theirs may hold a password."""
    good, bad = tmp_path / "b.gz", tmp_path / "bad.gz"
    settings = {"dcgm_endpoint": "http://user:hush@127.0.0.1:9/metrics"}
    capture(good, settings, ENV, ticks=1, interval_seconds=0)
    lines = gzip.decompress(good.read_bytes()).splitlines(keepends=True)
    assert b"hush" not in b"".join(lines)
    head = json.loads(lines[0])
    head["settings"] |= settings | {"processes": True, "events": True, "pci_check": True}
    bad.write_bytes(gzip.compress(json.dumps(head).encode() + b"\n" + b"".join(lines[1:])))
    plugin = replayed(bad)
    found = plugin._plugin._settings
    assert (found.dcgm_endpoint, found.processes, found.events, found.pci_check) == ("", False, False, False)
    plugin.close()


def test_two_captures_to_one_name_spoil_neither(tmp_path: Path, fake_nvml: nvml.State) -> None:
    bundle, part = tmp_path / "b.gz", tmp_path / "b.gz.part"
    part.write_bytes(b"another's")
    with pytest.raises(FileExistsError):
        captured(bundle, fake_nvml, ticks=1)
    assert part.read_bytes() == b"another's"
    part.unlink()
    bundle.write_bytes(b"there")
    with pytest.raises(FileExistsError):
        captured(bundle, fake_nvml, ticks=1)
    assert (bundle.read_bytes(), part.exists()) == (b"there", False)


def test_a_bundle_that_is_none_is_refused_with_its_reason(tmp_path: Path, fake_nvml: nvml.State) -> None:
    good = tmp_path / "b.gz"
    captured(good, fake_nvml, ticks=3)
    lines = gzip.decompress(good.read_bytes()).splitlines(keepends=True)
    cases = {
        b"no gzip": "is no capture",
        gzip.compress(b'{"x": 1}\n'): "is no capture",
        gzip.compress(b'{"xpulse_capture": 99}\n'): "has format 99",
        gzip.compress(lines[0]): "has no tick",
        gzip.compress(lines[0] + b"{broken\n"): "line 2: not JSON",
        gzip.compress(lines[0] + b'{"calls": 3}\n'): "line 2: TypeError",
    }
    for data, said in cases.items():
        bad = tmp_path / "bad.gz"
        bad.write_bytes(data)
        with pytest.raises(BadBundle, match=said):
            read(bad)
    with pytest.raises(BadBundle, match="cannot be read"):
        read(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"replay: .*absent"):
        create({"replay": str(tmp_path / "absent")}, ENV)


def test_a_capture_that_was_cut_gives_the_ticks_it_has(tmp_path: Path, fake_nvml: nvml.State) -> None:
    good = tmp_path / "b.gz"
    captured(good, fake_nvml, ticks=4)
    raw = gzip.decompress(good.read_bytes())
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(raw[: len(raw) - 100]))
    assert len(read(cut)[1]) == 3
    cut.write_bytes(good.read_bytes()[:-200])
    assert 1 <= len(read(cut)[1]) <= 4
