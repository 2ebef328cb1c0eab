"""The PCI bus as /sys shows it: the vendor's functions, their drivers, and devices that leave while they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.procfs.pci import PciBus, PciDevice
from tests.fakes.procfs import FakePciBus


@pytest.fixture
def fake(tmp_path: Path) -> FakePciBus:
    return FakePciBus(tmp_path / "devices")


def test_the_vendors_devices_by_address(fake: FakePciBus) -> None:
    fake.add("0000:9b:00.0")
    fake.add("0000:10:00.0", driver="")
    fake.add("0000:11:00.1", class_code=0x040300, driver="snd_hda_intel")
    fake.add("0000:00:1f.0", vendor=0x8086)
    assert PciBus(fake.root).devices(0x10DE) == (
        PciDevice("0000:10:00.0", 0x2330, 0x030200, "", virtual=False),
        PciDevice("0000:11:00.1", 0x2330, 0x040300, "snd_hda_intel", virtual=False),
        PciDevice("0000:9b:00.0", 0x2330, 0x030200, "nvidia", virtual=False),
    )


def test_a_virtual_function_is_told(fake: FakePciBus) -> None:
    fake.add("0000:10:00.4", virtual=True)
    devices = PciBus(fake.root).devices(0x10DE)
    assert devices is not None
    assert [device.virtual for device in devices] == [True]


def test_a_device_that_left_while_it_was_read_is_left_out(fake: FakePciBus) -> None:
    fake.add("0000:10:00.0")
    (fake.root / "0000:10:00.0" / "class").unlink()
    assert PciBus(fake.root).devices(0x10DE) == ()


def test_what_is_no_address_is_left_out(fake: FakePciBus) -> None:
    fake.add("not-a-device")
    assert PciBus(fake.root).devices(0x10DE) == ()


def test_a_bus_that_cannot_be_seen_is_not_an_empty_one(tmp_path: Path) -> None:
    assert PciBus(tmp_path / "nowhere").devices(0x10DE) is None
    assert PciBus(tmp_path).devices(0x10DE) is None
