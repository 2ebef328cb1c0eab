"""The last value is held until its max_age and then it is stale: never zero, never for ever."""

from schemas.builder import SampleBuilder
from schemas.catalogue import BY_NAME
from schemas.hold import Held
from schemas.values import Absent

S = 1_000_000_000


def test_value_is_held_then_stale() -> None:
    held = Held()
    held.update(SampleBuilder("a:1").set("power_watts", 300).build(), 10 * S)
    age = BY_NAME["power_watts"].max_age_ns
    assert held.get("power_watts", 10 * S + age) == 300
    assert held.get("power_watts", 10 * S + age + 1) == Absent("stale")
    assert held.get("fan_ratio", 10 * S) is None


def test_not_due_keeps_and_absent_replaces() -> None:
    held = Held()
    held.update(SampleBuilder("a:1").set("power_watts", 300).set("fan_ratio", 0.5).build(), 1 * S)
    held.update(SampleBuilder("a:1").absent("power_watts", "lost").build(), 2 * S)
    assert held.get("power_watts", 2 * S) == Absent("lost")
    assert held.get("fan_ratio", 2 * S) == 0.5
    assert held.age_ns("fan_ratio", 2 * S) == S


def test_an_older_sample_never_overwrites() -> None:
    held = Held()
    held.update(SampleBuilder("a:1").set("power_watts", 300).build(), 2 * S)
    held.update(SampleBuilder("a:1").set("power_watts", 100).set("fan_ratio", 0.2).build(), 1 * S)
    assert held.get("power_watts", 2 * S) == 300
    assert held.get("fan_ratio", 2 * S) is not None
    assert held.newest_ns == 2 * S
    assert [name for name, _ in held.items(2 * S)] == ["power_watts", "fan_ratio"]


def test_an_unchanged_absence_stands_while_the_device_is_heard_of() -> None:
    held = Held()
    held.update(SampleBuilder("a:1").absent("fan_ratio", "not_supported").build(), 1 * S)
    held.update(SampleBuilder("a:1").set("power_watts", 300).build(), 60 * S)
    assert held.get("fan_ratio", 61 * S) == Absent("not_supported")
    assert held.get("fan_ratio", 90 * S) == Absent("stale")
