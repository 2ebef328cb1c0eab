"""What every collector plugin must do, whatever it reads. A new plugin adds one line to PLUGINS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from collectors.contract import API, Env, Plugin, Reading, Ready
from collectors.dcgm import plugin as dcgm
from collectors.nvidia import plugin as nvidia
from collectors.publisher import Publisher
from collectors.simulated import plugin as simulated
from collectors.worker import FAST, FAST_AND_SLOW
from schemas.catalogue import BY_NUMBER, CATALOGUE, SLOW
from schemas.codec import decode
from schemas.flow import Record
from schemas.identity import NodeRef, vendor_of
from schemas.telemetry import v1
from tests.fakes import plugins
from tests.fakes.exporter import FakeExporter, serving
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library

__all__ = ["fake_nvml", "fake_nvml_library"]
DATA = Path(__file__).parents[1] / "data"
ENV = Env(NodeRef("c", "n"), "boot", "0.1", 10**9)


def fake(request: pytest.FixtureRequest) -> Plugin:
    return plugins.Fake({}, ENV)


def nvidia_on_fake_nvml(request: pytest.FixtureRequest) -> Plugin:
    request.getfixturevalue("fake_nvml")
    return nvidia.create({}, ENV)


def dcgm_on_fake_exporter(request: pytest.FixtureRequest) -> Plugin:
    return dcgm.create({"endpoints": [request.getfixturevalue("exporter").url], "interval_seconds": 0}, ENV)


PLUGINS: dict[str, Callable[[pytest.FixtureRequest], Plugin]] = {
    "dcgm": dcgm_on_fake_exporter,
    "fake": fake,
    "nvidia": nvidia_on_fake_nvml,
    "simulated": lambda _: simulated.create({}, ENV),
}


@pytest.fixture
def exporter() -> Iterator[FakeExporter]:
    with serving(FakeExporter((DATA / "dcgm" / "h100x2.prom").read_text(encoding="utf-8"))) as fake:
        yield fake


@pytest.fixture(params=list(PLUGINS))
def plugin(request: pytest.FixtureRequest) -> Iterator[Plugin]:
    made = PLUGINS[request.param](request)
    yield made
    made.close()


@pytest.fixture
def ready(plugin: Plugin) -> Plugin:
    found = plugin.probe()
    assert isinstance(found, Ready), found
    return plugin


def read(plugin: Plugin, *, slow: bool = True) -> Reading:
    return plugin.read(FAST_AND_SLOW if slow else FAST, time.monotonic() + 30)


def samples(reading: Reading) -> list[v1.DeviceSample]:
    return [sample for part in reading.samples for sample in part.samples]


def absent(sample: v1.DeviceSample) -> set[str]:
    return {BY_NUMBER[number].name for absence in sample.absences for number in absence.field_number}


def test_it_speaks_this_contract(plugin: Plugin) -> None:
    assert plugin.api == API


def test_probe_names_each_device_once_and_may_be_called_again(plugin: Plugin) -> None:
    first, second = plugin.probe(), plugin.probe()
    assert isinstance(first, Ready)
    assert first == second
    assert len(set(first.devices)) == len(first.devices) > 0
    assert all(vendor_of(uid) and uid != vendor_of(uid) for uid in first.devices)


def test_read_gives_the_probed_devices(ready: Plugin) -> None:
    found = ready.probe()
    assert isinstance(found, Ready)
    assert {sample.uid for sample in samples(read(ready))} == set(found.devices)


def test_every_field_is_a_value_or_an_absence_and_never_both(ready: Plugin) -> None:
    read(ready)
    for sample in samples(read(ready)):
        values = {metric.name for metric in CATALOGUE if sample.HasField(metric.name)}
        assert values | absent(sample) == {metric.name for metric in CATALOGUE}
        assert not values & absent(sample)
        assert values


def test_slow_fields_come_only_when_due(ready: Plugin) -> None:
    read(ready)
    for sample in samples(read(ready, slow=False)):
        names = {metric.name for metric in SLOW}
        assert not {name for name in names if sample.HasField(name)}
        assert not absent(sample) & names


def test_each_sample_carries_its_identity(ready: Plugin) -> None:
    for sample in samples(read(ready, slow=False)):
        assert sample.info.kind != v1.DeviceKind.DEVICE_KIND_UNSPECIFIED
        assert sample.info.model
        assert not sample.full, "full is the publisher's to say"


def test_counters_do_not_fall(ready: Plugin) -> None:
    first, second = (samples(read(ready)) for _ in range(2))
    for metric in CATALOGUE:
        if metric.kind == "counter":
            for before, after in zip(first, second, strict=True):
                assert getattr(after, metric.name) >= getattr(before, metric.name), metric.name


def test_readings_are_dated_and_go_forward(ready: Plugin) -> None:
    times = [[part.taken_at_ns for part in read(ready, slow=False).samples] for _ in range(3)]
    assert all(before < after for row, later in pairwise(times) for before, after in zip(row, later, strict=True))


def test_what_it_reads_can_be_published_and_decoded(ready: Plugin) -> None:
    publisher = Publisher("x", ENV.node, agent_epoch=1, interval_ns=ENV.interval_ns, boot_id=ENV.boot_id)
    outs = [out for slow in (True, False) for out in publisher.outs(read(ready, slow=slow), 1)]
    assert outs
    for out in outs:
        assert decode(Record(out.topic, 0, 0, out.key, out.value, out.headers, 0)) is not None


def test_past_the_deadline_it_comes_back_at_once_with_every_device_listed(ready: Plugin) -> None:
    uids = {sample.uid for sample in samples(read(ready))}
    started = time.monotonic()
    late = ready.read(FAST, time.monotonic() - 1)
    assert time.monotonic() - started < 1
    assert {sample.uid for sample in samples(late)} == uids


def test_after_close_it_can_be_probed_again(ready: Plugin) -> None:
    ready.close()
    ready.close()
    assert isinstance(ready.probe(), Ready)
    assert samples(read(ready))
