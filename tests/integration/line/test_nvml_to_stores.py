"""A real card's numbers go through the stock pynvml, the agent, the bus and the sinks, and come back from the stores in our units.

The fake libnvidia-ml serves the raw numbers; what is expected is computed here, from the same file, by a table of its own: it
must not share code with the collector.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from schemas.catalogue import BY_NAME
from schemas.store import Latest, Store
from sinks.settings import Influx, Sinks
from tests.fakes import nvml
from tests.integration.stack import Role, Stack, embedded_bus, kafka_bus

if TYPE_CHECKING:
    from tests.integration.servers.influxdb import InfluxServer
    from tests.integration.servers.kafka import KafkaServer

NODE = "gpu-node-1"
CLUSTER = "prod-a"
MODEL = "NVIDIA H100 80GB HBM3"
PRECISION = {"float": 1e-6, "double": 1e-15}
"""Relative, by wire type; whole numbers are exact."""


def raw(state: nvml.State, index: int) -> dict[str, str]:
    """What the state file says of a card, as text: its own word over that of all; of groups by their names."""
    spelt: dict[str, str] = {}
    for data in (state.data["defaults"], state.data["devices"][index]):
        groups = {"field": data.get("fields"), "gpm": data.get("gpm"), "link": (data.get("nvlink") or {}).get("each")}
        groups |= {
            "ecc": data.get("ecc_errors"),
            "sram": data.get("sram"),
            "banks": data.get("remap_histogram"),
            "fabric": data.get("fabric"),
        }
        spelt |= {name: str(value) for name, value in data.items() if not isinstance(value, dict | list)}
        spelt |= {f"{group}.{name}": str(value) for group, values in groups.items() for name, value in (values or {}).items()}
    return spelt


def expected(card: Mapping[str, str]) -> dict[str, float]:
    """What the stores must hold of a card that answers, in the catalogue's units, from NVML's (mW, mJ, MHz, KiB, %)."""

    def number(key: str) -> float:
        return float("nan") if card[key].startswith("!") else float(card[key])

    links = int(card["field.91"])
    return {
        "utilization_ratio": number("utilization_percent") / 100,
        "memory_used_bytes": number("memory_used_bytes"),
        "power_watts": number("field.186") / 1000,  # the instant power, not the average of a second
        "temperature_celsius": number("temperature_celsius"),
        "sm_clock_hertz": number("sm_clock_megahertz") * 1_000_000,
        "memory_clock_hertz": number("memory_clock_megahertz") * 1_000_000,
        "energy_joules": number("field.83") / 1000,
        "pcie_tx_bytes": number("field.197"),
        "pcie_rx_bytes": number("field.198"),
        "interconnect_tx_bytes": number("field.138") * 1024,
        "interconnect_rx_bytes": number("field.139") * 1024,
        "sm_active_ratio": number("gpm.2") / 100,
        "tensor_active_ratio": number("gpm.5") / 100,
        "dram_active_ratio": number("gpm.10") / 100,
        "memory_temperature_celsius": number("field.82"),
        "throttle_reasons": 0,
        "throttled_thermal_seconds": number("field.75") / 1e9,
        "throttled_power_seconds": number("field.74") / 1e9,
        "performance_state": number("performance_state"),
        "memory_total_bytes": number("memory_total_bytes"),
        "memory_reserved_bytes": number("memory_reserved_bytes"),
        "power_limit_watts": number("power_limit_milliwatts") / 1000,
        "sm_clock_max_hertz": number("sm_clock_max_megahertz") * 1_000_000,
        "memory_clock_max_hertz": number("memory_clock_max_megahertz") * 1_000_000,
        "pcie_link_generation": number("pcie_generation"),
        "pcie_link_generation_max": number("pcie_generation_max"),
        "pcie_link_width": number("pcie_width"),
        "pcie_link_width_max": number("pcie_width_max"),
        "pcie_replays": number("field.94"),
        "ecc_corrected_volatile_errors": number("ecc_corrected_volatile"),
        "ecc_uncorrected_volatile_errors": number("ecc_uncorrected_volatile"),
        "ecc_corrected_aggregate_errors": number("ecc_corrected_aggregate"),
        "ecc_uncorrected_aggregate_errors": number("ecc_uncorrected_aggregate"),
        "remapped_rows_correctable": number("remapped_correctable"),
        "remapped_rows_uncorrectable": number("remapped_uncorrectable"),
        "remapped_rows_pending": number("remapped_pending"),
        "remapped_rows_failed": number("remapped_failed"),
        "interconnect_errors": links * (number("link.replay") + number("link.recovery") + number("link.crc_flit")),
        "interconnect_links_active": links,
        # T.Limit margins: from the core's temperature and its distance to the limit, and the limits' own distances
        "temperature_slowdown_celsius": number("temperature_celsius") + number("margin_celsius") - number("field.194"),
        "temperature_shutdown_celsius": number("temperature_celsius") + number("margin_celsius") - number("field.193"),
        "memory_busy_ratio": number("memory_utilization_percent") / 100,
        "encoder_utilization_ratio": number("encoder_percent") / 100,
        "decoder_utilization_ratio": number("decoder_percent") / 100,
        "graphics_active_ratio": number("gpm.1") / 100,
        "sm_occupancy_ratio": number("gpm.3") / 100,
        "fp64_active_ratio": number("gpm.11") / 100,
        "fp32_active_ratio": number("gpm.12") / 100,
        "fp16_active_ratio": number("gpm.13") / 100,
        "temperature_margin_celsius": number("margin_celsius"),
        "temperature_operating_max_celsius": number("temperature_celsius") + number("margin_celsius") - number("field.196"),
        "power_average_watts": number("field.185") / 1000,
        "power_limit_min_watts": number("power_limit_min_milliwatts") / 1000,
        "power_limit_default_watts": number("power_limit_default_milliwatts") / 1000,
        "graphics_clock_hertz": number("graphics_clock_megahertz") * 1_000_000,
        "video_clock_hertz": number("video_clock_megahertz") * 1_000_000,
        "graphics_clock_max_hertz": number("graphics_clock_max_megahertz") * 1_000_000,
        "video_clock_max_hertz": number("video_clock_max_megahertz") * 1_000_000,
        "throttled_hardware_thermal_seconds": number("field.270") / 1e9,
        "throttled_power_brake_seconds": number("field.271") / 1e9,
        "throttled_sync_boost_seconds": number("field.76") / 1e9,
        "ecc_enabled": number("ecc_mode"),
        **{
            f"ecc_{kind}_{place}_{counter}_errors": number(f"ecc.{kind}.{counter}.{place}")
            for kind in ("corrected", "uncorrected")
            for place in ("dram", "sram")
            for counter in ("volatile", "aggregate")
        },
        "ecc_sram_threshold_exceeded": number("sram.threshold_exceeded"),
        "remapped_row_banks_low": number("banks.low"),
        "remapped_row_banks_exhausted": number("banks.none"),
        "interconnect_replay_errors": links * number("link.replay"),
        "interconnect_recovery_errors": links * number("link.recovery"),
        "interconnect_crc_errors": links * number("link.crc_flit"),
        "fabric_state": number("fabric.state"),
        "recovery_action": number("field.230"),
        "persistence_mode": number("persistence_mode"),
        "partitioning_enabled": number("mig_mode"),
        "partitioning_pending": number("mig_mode"),
        "compute_mode": number("compute_mode"),
        "bar1_total_bytes": number("bar1_total_bytes"),
        "bar1_used_bytes": number("bar1_used_bytes"),
        "accounting_enabled": number("accounting_mode"),
    }


FIRST, SECOND = "nvidia:GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a90", "nvidia:GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a91"
ABSENT_OF_FIRST = dict.fromkeys(
    (
        "fan_ratio",  # the capture is of a card without a fan
        "fabric_unhealthy",  # no health was told
        "license_valid",  # no vGPU
        "pcie_rx_bytes_per_second",  # it has byte counters, so nothing blocks for a window
        "pcie_tx_bytes_per_second",
        "retired_pages_double_bit",  # rows are remapped instead
        "retired_pages_pending",
        "retired_pages_single_bit",
        "temperature_memory_max_celsius",  # told as a distance to a margin that the driver does not tell
        "throttled_board_limit_seconds",
        "throttled_low_utilization_seconds",
        "throttled_reliability_seconds",
    ),
    "not_supported",
)
ABSENT_OF_SECOND = ABSENT_OF_FIRST | {
    "power_watts": "no_permission",
    "memory_temperature_celsius": "out_of_range",
    "interconnect_tx_bytes": "not_supported",
    "interconnect_rx_bytes": "not_supported",
    "interconnect_errors": "not_supported",
    "interconnect_links_active": "not_supported",
    "interconnect_replay_errors": "not_supported",
    "interconnect_recovery_errors": "not_supported",
    "interconnect_crc_errors": "not_supported",
}
"""What the fixture `cards` breaks of the second card, and the reason that must arrive."""


def agent_environment(library: Path, state: nvml.State) -> dict[str, str]:
    """An agent that reads the fake driver four times a second, its slow fields each second."""
    return {
        "LD_LIBRARY_PATH": str(library.parent),
        nvml.STATE_VARIABLE: str(state.path),
        "XPULSE_CLUSTER": CLUSTER,
        "XPULSE_NODE": NODE,
        "XPULSE_COLLECTORS__PLUGINS": json.dumps({"nvidia": {"on_unavailable": "fail"}}),
        "XPULSE_COLLECTORS__INTERVAL_SECONDS": "0.25",
        "XPULSE_COLLECTORS__SLOW_INTERVAL_SECONDS": "1",
    }


@pytest.fixture
def cards(tmp_path: Path) -> nvml.State:
    """Two H100; of the second one power may not be read, the memory's sensor gives nonsense, and there is no NVLink."""
    state = nvml.State(tmp_path / "nvml.state", count=2)
    with state.changing():  # so that no two numbers can be taken for each other
        names = [
            f"{kind}.{counter}.{place}"
            for kind in ("corrected", "uncorrected")
            for counter in ("volatile", "aggregate")
            for place in ("dram", "sram")
        ]
        state.every.put("ecc_errors", **{name: 11 + i for i, name in enumerate(names)})
        state.every.put("remap_histogram", low=3, none=1)
        state.every.put("fields", **{"161:each": 4, "162:each": 2})  # what the links' replay and recovery are as fields
        state.set(every__field__76=2 * 10**9, every__field__270=5 * 10**9, every__field__271=7 * 10**9, every__field__230=1)
        state.set(every__link__replay=4, every__link__recovery=2, every__encoder_percent=12, every__decoder_percent=7)
        state.set(every__ecc_corrected_volatile=31, every__ecc_corrected_aggregate=32, every__ecc_uncorrected_volatile=33)
        state.set(every__ecc_uncorrected_aggregate=34, every__compute_mode=3, every__accounting_mode=1)
    state.set(_1__field__186="!4", _1__power_milliwatts="!4", _1__field__82=999)
    state.set(_1__field__91="!3", _1__field__138="!3", _1__field__139="!3")
    return state


@pytest.fixture(params=["embedded bus, SQLite", pytest.param("Kafka, InfluxDB and SQLite", marks=pytest.mark.integration)])
def stores(request: pytest.FixtureRequest, tmp_path: Path, fake_nvml_library: Path, cards: nvml.State) -> Iterator[Line]:
    """The agent and its sinks, as processes."""
    if request.param.startswith("embedded"):
        with embedded_bus() as bus, Stack(bus, tmp_path) as stack:
            yield Line(stack, fake_nvml_library, cards, [])
        return
    kafka: KafkaServer = request.getfixturevalue("kafka_server")
    influx: InfluxServer = request.getfixturevalue("influx_server")
    admin, written = tmp_path / "admin.token", tmp_path / "written.token"
    admin.write_text(influx.token)
    bus = kafka_bus(kafka)
    target = Influx(url=influx.url, org=influx.org, bucket=bus.topic_prefix + "nvml", token_file=written)
    environment = {
        "XPULSE_SINKS__INFLUXDB__URL": target.url,
        "XPULSE_SINKS__INFLUXDB__ORG": target.org,
        "XPULSE_SINKS__INFLUXDB__BUCKET": target.bucket,
        "XPULSE_SINKS__INFLUXDB__TOKEN_FILE": str(written),
    }
    with Stack(bus, tmp_path, environment) as stack:
        without_token = {"XPULSE_SINKS__INFLUXDB__TOKEN_FILE": str(admin)}
        setup = ("sink", "influxdb", "--setup", "--admin-token-file", str(admin), "--write-token", str(written))
        said = stack.run(*setup, environment=without_token)
        assert "made" in said
        assert influx.token not in said
        yield Line(stack, fake_nvml_library, cards, [Sinks(store="influxdb", influxdb=target)])


class Line:
    """The agent on the fake driver, the bus, a sink for each store, and the stores' read sides."""

    def __init__(self, stack: Stack, library: Path, cards: nvml.State, others: Sequence[Sinks]) -> None:
        self.stack, self.cards = stack, cards
        self.settings = [Sinks(), *others]
        self.sinks: list[Role] = [stack.start("sink", settings.store) for settings in self.settings]
        self.agent = stack.start("agent", environment=agent_environment(library, cards))
        self.opened: dict[str, Store] = {settings.store: stack.store(settings) for settings in self.settings}

    def card(self, store: str, uid: str) -> Latest | None:
        """The newest word of a store on a card."""
        try:
            found = self.opened[store].latest("device", where={"uid": uid})
        except ConnectionError:
            return None  # the sink has not made it yet
        assert len(found) <= 1, f"one card is several series in {store}: {[f.tags for f in found]}"
        return found[0] if found else None

    def until_settled(self, uid: str, wanted: Mapping[str, float], absent: Mapping[str, str]) -> None:
        """Wait until each store says exactly this of a card; on failure the difference is shown."""
        for store in self.opened:
            last: list[str] = ["it has no such card"]

            def same(store: str = store, last: list[str] = last) -> bool:
                found = self.card(store, uid)
                if found is not None:
                    last[:] = differences(found, wanted, absent)
                return not last

            try:
                self.stack.until(same, f"{store} has the numbers of {uid}", seconds=60)
            except AssertionError as error:
                raise AssertionError("\n".join(last) + f"\n{error}") from None


def differences(found: Latest, wanted: Mapping[str, float], absent: Mapping[str, str]) -> list[str]:
    """How what a store says differs from what the driver said: every field of the catalogue is judged."""
    said = {name: value for name, (value, _) in found.values.items() if name in BY_NAME}
    wrong = [
        f"{name}: {said.get(name)!r} ({found.absent.get(name, 'not absent')}) instead of {value!r}"
        for name, value in wanted.items()
        if said.get(name) != pytest.approx(value, rel=PRECISION.get(BY_NAME[name].wire, 0), abs=0)
    ]
    wrong += [
        f"{name}: {found.absent.get(name)!r} instead of absent({reason})"
        for name, reason in absent.items()
        if found.absent.get(name) != reason
    ]
    unasked = (said.keys() | found.absent.keys()) - wanted.keys() - absent.keys()
    return wrong + [f"{name}: {said.get(name, found.absent.get(name))!r} although the driver said nothing" for name in sorted(unasked)]


def without(values: dict[str, float], absent: Mapping[str, str]) -> dict[str, float]:
    return {name: value for name, value in values.items() if name not in absent}


def test_what_the_driver_says_arrives_in_our_units(stores: Line, cards: nvml.State) -> None:
    first, second = expected(raw(cards, 0)), expected(raw(cards, 1) | {"field.91": "0"})
    assert first.keys() | ABSENT_OF_FIRST.keys() == BY_NAME.keys(), "the table must know every field of the catalogue"
    stores.until_settled(FIRST, first, ABSENT_OF_FIRST)
    stores.until_settled(SECOND, without(second, ABSENT_OF_SECOND), ABSENT_OF_SECOND)
    for store in stores.opened:
        said = stores.card(store, FIRST)
        assert said is not None
        tags = {"cluster": CLUSTER, "node": NODE, "vendor": "nvidia", "uid": FIRST, "kind": "accelerator", "model": MODEL}
        assert dict(said.tags) == tags
        about = {name: value for name, (value, _) in said.values.items()}
        assert (about["serial"], about["bdf"], about["driver_version"]) == ("1652923014527", "0000:10:00.0", "590.48.01")
        assert (about["index"], about["source"], about["simulated"]) == (0, "nvidia", False)
        assert about["power_limit_max_watts"] == pytest.approx(700.0)

    # what changes arrives as it changes: a gauge, a counter, a set of bits, a slow field
    cards.set(every__temperature_celsius=71, every__margin_celsius=14, every__field__83=918273999999)
    cards.set(every__clock_reasons="0x24", every__power_limit_milliwatts=450500, _0__ecc_corrected_volatile=3)
    changed = expected(raw(cards, 0)) | {"throttle_reasons": float(1 << 2 | 1 << 5)}
    stores.until_settled(FIRST, changed, ABSENT_OF_FIRST)

    # a lost card is absent in every field, and the other one goes on
    cards.set(_1__error=15)
    stores.until_settled(SECOND, {}, dict.fromkeys(BY_NAME, "lost"))
    cards.set(every__temperature_celsius=72, every__margin_celsius=13)
    changed = expected(raw(cards, 0)) | {"throttle_reasons": float(1 << 2 | 1 << 5)}
    stores.until_settled(FIRST, changed, ABSENT_OF_FIRST)
    for opened in stores.opened.values():
        lost = [e for e in opened.events(start_ns=0, end_ns=time.time_ns()) if e.kind == "lost"]
        assert [dict(e.tags)["uid"] for e in lost] == [SECOND]

    # once nothing comes any more, both stores give the same answers to every question
    assert stores.agent.stop() == 0
    stores.stack.roles.remove(stores.agent)
    for sink in stores.sinks:
        stores.stack.until(lambda sink=sink: (s := sink.status()) and s.ready and s.lag == 0, f"{sink.name} has read all")  # type: ignore[misc]  # a default binds the loop's sink
    answers = {name: answer(store) for name, store in stores.opened.items()}
    assert all(answers.values())
    for name, found in answers.items():
        assert found == answers["sqlite"], f"{name} and sqlite differ"
    for settings in stores.settings:
        line = stores.stack.run(
            "query", "device", "power_watts", "--where", f"uid={FIRST}", environment={"XPULSE_SINKS__STORE": settings.store}
        ).splitlines()[-1]
        assert line.endswith("power_watts=588.39")


def answer(store: Store) -> list[object]:
    """Everything a store can be asked about what was written, as plain values."""
    end_ns = time.time_ns() + 10**9
    fields = ["power_watts", "energy_joules", "throttle_reasons", "remapped_rows_failed", "seq"]
    ranges = store.range("device", fields, start_ns=0, end_ns=end_ns)
    return [
        store.latest("device"),
        store.series("device"),
        [(s.tags, s.field, s.times_ns.tolist(), s.values.tolist()) for s in ranges],
        store.events(start_ns=0, end_ns=end_ns),
    ]


@pytest.mark.integration
def test_the_token_of_setup_is_for_one_bucket(kafka_server: KafkaServer, influx_server: InfluxServer, tmp_path: Path) -> None:
    admin, written = tmp_path / "admin.token", tmp_path / "written.token"
    admin.write_text(influx_server.token)
    environment = {
        "XPULSE_SINKS__INFLUXDB__URL": influx_server.url,
        "XPULSE_SINKS__INFLUXDB__ORG": influx_server.org,
        "XPULSE_SINKS__INFLUXDB__BUCKET": f"own-{time.time_ns()}",
    }
    with Stack(kafka_bus(kafka_server), tmp_path, environment) as stack:
        stack.run("sink", "influxdb", "--setup", "--admin-token-file", str(admin), "--write-token", str(written))
    assert written.stat().st_mode & 0o777 == 0o600
    token = written.read_text().strip()
    assert token != influx_server.token

    def write(bucket: str) -> int:
        address = f"{influx_server.url}/api/v2/write?org={influx_server.org}&bucket={bucket}"
        request = urllib.request.Request(address, b"device power_watts=1", {"Authorization": f"Token {token}"})
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    assert write(environment["XPULSE_SINKS__INFLUXDB__BUCKET"]) == 204
    assert write(influx_server.bucket) in (401, 403, 404)
