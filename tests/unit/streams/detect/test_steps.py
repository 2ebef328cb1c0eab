"""The law of operators: step(a + b) is step(a) and then step(b), the same device twice in a batch included."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.flow import Tick
from schemas.telemetry import v1
from streams.operators.detect import events, forecasts, samples, services, silence
from streams.operators.detect.columns import Taken
from streams.rules import load_rules
from tests.unit.streams.detect.given import DETECTORS, TIMES, at, batch

RULES = load_rules()
NODES = ("n1", "n2")


def _device(draw: st.DrawFn, uid: str) -> v1.DeviceSample:
    made = v1.DeviceSample(uid=uid)
    choices = {
        "memory_used_bytes": st.sampled_from([10, 94, 96, 99]),
        "memory_total_bytes": st.sampled_from([100, 200]),
        "temperature_celsius": st.sampled_from([20.0, 84.0, 89.0, float("nan")]),
        "temperature_slowdown_celsius": st.just(90.0),
        "throttle_reasons": st.sampled_from([0, 1 << 6, 1 << 7]),
        "ecc_uncorrected_volatile_errors": st.integers(0, 3),
        "remapped_rows_failed": st.booleans(),
    }
    for name in draw(st.lists(st.sampled_from(sorted(choices)), unique=True)):
        setattr(made, name, draw(choices[name]))
    if draw(st.booleans()):
        made.absences.add(reason=v1.AbsenceReason.ABSENCE_REASON_ERROR, field_number=[5, 7])
    return made


@st.composite
def batches(draw: st.DrawFn) -> list[v1.SampleBatch]:
    made, second, boots = [], 0.0, draw(st.lists(st.sampled_from(["a", "b"]), min_size=12, max_size=12))
    for i in range(draw(st.integers(1, 12))):
        second += draw(st.sampled_from([0, 1, 7, 20, 200]))
        uids = draw(st.lists(st.sampled_from(["v:1", "v:2", "v:1"]), max_size=4))
        devices = [_device(draw, uid) for uid in uids]
        made.append(batch(second, *devices, node=draw(st.sampled_from(NODES)), boot_id=boots[i], sequence=draw(st.integers(0, 40))))
    return made


@settings(max_examples=60, deadline=None)
@given(batches(), st.data())
def test_samples(items: list[v1.SampleBatch], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(items)))
    one, two, each = (samples.start(RULES, DETECTORS, TIMES) for _ in range(3))
    taken = [Taken(item) for item in items]
    whole = samples.step(one, taken)[1]
    assert whole == samples.step(two, taken[:cut])[1] + samples.step(two, taken[cut:])[1]
    assert whole == [f for item in taken for f in samples.step(each, [item])[1]]
    assert one.counts == two.counts == each.counts


def _fleet(seed: int) -> list[v1.SampleBatch]:
    """Two nodes of five busy cards, whose points end now and then: peers and bursts have something to say."""
    rng = np.random.default_rng(seed)
    made: list[v1.SampleBatch] = []
    second = [0.0, 3.0]
    for n in range(120):
        which = int(rng.integers(0, 2))
        second[which] += float(rng.choice([5, 10, 20]))
        devices = []
        for i in range(5):
            device = v1.DeviceSample(uid=f"v:{which}{i}", index=i, info=v1.DeviceInfo(model="H100"), utilization_ratio=0.9)
            device.sm_active_ratio = 0.7
            device.sm_clock_hertz = 1e9 if (which, i) == (1, 2) else 1.9e9
            device.power_watts = float(500 + rng.normal(0, 5))
            device.temperature_celsius = 90.0 if (which, i) == (0, 4) else 60.0
            device.throttle_reasons = int(rng.random() < 0.02) << 6
            device.ecc_corrected_volatile_errors = 200 * (n // 80)
            if rng.random() < 0.95:
                devices.append(device)
        if rng.random() < 0.1 and devices:
            devices.append(devices[0])
        made.append(batch(second[which], *devices, node=NODES[which], sequence=n))
    return made


@pytest.mark.parametrize("seed", [1, 2])
def test_samples_whose_devices_are_compared(seed: int) -> None:
    items = [Taken(item) for item in _fleet(seed)]
    cuts = sorted(np.random.default_rng(seed).integers(0, len(items), 4).tolist())
    one, two, each = (samples.start(RULES, DETECTORS, TIMES) for _ in range(3))
    whole = samples.step(one, items)[1]
    assert {"slow_card", "hot_card"} <= {f.rule for f in whole}
    parts = [f for a, b in pairwise([0, *cuts, len(items)]) for f in samples.step(two, items[a:b])[1]]
    singly = [f for item in items for f in samples.step(each, [item])[1]]
    assert by_device(whole) == by_device(parts) == by_device(singly)
    assert told(one) == told(two) == told(each)


def by_device(found: list[v1.Finding]) -> dict[str, list[bytes]]:
    made: dict[str, list[bytes]] = {}
    for finding in found:
        made.setdefault(finding.entity, []).append(finding.SerializeToString(deterministic=True))
    return made


def told(state: samples.Samples) -> list[bytes]:
    return sorted(stats.SerializeToString(deterministic=True) for stats in state.stats)


@st.composite
def happenings(draw: st.DrawFn) -> list[v1.DeviceEvent | events.Seen | Tick]:
    made: list[v1.DeviceEvent | events.Seen | Tick] = []
    second = 0
    for _ in range(draw(st.integers(1, 15))):
        second += draw(st.sampled_from([0, 1, 16, 4000]))
        uid = draw(st.sampled_from(["v:1", "v:2", ""]))
        kind = draw(st.sampled_from(v1.DeviceEventKind.keys()[1:]))
        match draw(st.sampled_from(["event", "seen", "tick"])):
            case "event":
                made.append(v1.DeviceEvent(cluster="c1", node="n1", uid=uid, source="nvidia", kind=kind, at_ns=at(second), code=79))
            case "seen":
                made.append(events.Seen("c1", "n1", uid, "nvidia", at(second)))
            case _:
                made.append(Tick(at(second)))
    return made


@settings(max_examples=60, deadline=None)
@given(happenings(), st.data())
def test_events(items: list[v1.DeviceEvent | events.Seen | Tick], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(items)))
    one, two = events.start(RULES, TIMES), events.start(RULES, TIMES)
    assert events.step(one, items)[1] == events.step(two, items[:cut])[1] + events.step(two, items[cut:])[1]


@st.composite
def words(draw: st.DrawFn) -> list[silence.Heard | silence.Expected | silence.Excused | Tick]:
    made: list[silence.Heard | silence.Expected | silence.Excused | Tick] = []
    second = 0
    for _ in range(draw(st.integers(1, 20))):
        second += draw(st.sampled_from([0, 1, 10, 16]))
        node = draw(st.sampled_from(NODES))
        on = draw(st.booleans())
        choices: dict[str, list[silence.Heard | silence.Expected | silence.Excused | Tick]] = {
            "heard": [silence.Heard("c1", node, at(second), on)],
            "expected": [silence.Expected("c1", node)],
            "excused": [silence.Excused("c1", node, "s", on, at(second))],
            "tick": [Tick(at(second))],
        }
        made += choices[draw(st.sampled_from(["heard", "expected", "excused", "tick", "tick"]))]
    return made


@settings(max_examples=60, deadline=None)
@given(words(), st.data())
def test_silence(items: list[silence.Heard | silence.Expected | silence.Excused | Tick], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(items)))
    one, two = silence.start(RULES, 15, TIMES), silence.start(RULES, 15, TIMES)
    assert silence.step(one, items)[1] == silence.step(two, items[:cut])[1] + silence.step(two, items[cut:])[1]


@st.composite
def foretold(draw: st.DrawFn) -> list[v1.Forecast | Tick]:
    made: list[v1.Forecast | Tick] = []
    second = 0
    for _ in range(draw(st.integers(1, 15))):
        second += draw(st.sampled_from([0, 1, 16, 60]))
        forecast = v1.Forecast(
            cluster="c1",
            node="n1",
            entity=draw(st.sampled_from(["device/v:1", "device/v:2"])),
            metric="memory_used_bytes",
            made_at_ns=at(second),
            valid_until_ns=at(second + 50),
            limit=100,
            current=draw(st.sampled_from([50, 100])),
            breach_probability_ratio=draw(st.sampled_from([0.1, 0.4, 0.9])),
            eta_p50_seconds=draw(st.sampled_from([60, 100_000])),
            withdrawn=draw(st.booleans()),
        )
        made.append(forecast if draw(st.booleans()) else Tick(at(second)))
    return made


@settings(max_examples=60, deadline=None)
@given(foretold(), st.data())
def test_forecasts(items: list[v1.Forecast | Tick], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(items)))
    one, two = forecasts.start(RULES, TIMES), forecasts.start(RULES, TIMES)
    assert forecasts.step(one, items)[1] == forecasts.step(two, items[:cut])[1] + forecasts.step(two, items[cut:])[1]


@st.composite
def windows(draw: st.DrawFn) -> list[v1.InferenceWindow]:
    made, second = [], 0
    for _ in range(draw(st.integers(1, 15))):
        second += draw(st.sampled_from([0, 10, 70]))
        window = v1.InferenceWindow(cluster="c1", node=draw(st.sampled_from(NODES)), ended_at_ns=at(second), started_at_ns=at(second - 10))
        window.workload.service = draw(st.sampled_from(["chat", "search", ""]))
        window.workload.pod = draw(st.sampled_from(["p1", "p2"]))
        window.requests_waiting = draw(st.sampled_from([0, 40, 100]))
        made.append(window)
    return made


@settings(max_examples=60, deadline=None)
@given(windows(), st.data())
def test_services(items: list[v1.InferenceWindow], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(items)))
    one, two = services.start(RULES, TIMES), services.start(RULES, TIMES)
    assert services.step(one, items)[1] == services.step(two, items[:cut])[1] + services.step(two, items[cut:])[1]
