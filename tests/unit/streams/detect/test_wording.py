"""Numbers as people say them."""

import pytest

from streams.operators.detect.wording import duration, quantity


@pytest.mark.parametrize(
    ("value", "unit", "ratio", "said"),
    [
        (76 * 2**30, "By", False, "76.0 GiB"),
        (512, "By", False, "512 B"),
        (0, "By", False, "0 B"),
        (1.98e9, "Hz", False, "1.98 GHz"),
        (91, "Cel", False, "91 °C"),
        (0.934, "1", True, "93.4 %"),
        (8, "1", False, "8"),
        (1234567, "{error}", False, "1234567"),
        (699.98, "W", False, "700 W"),
        (45, "s", False, "45 s"),
    ],
)
def test_quantity(value: float, unit: str, ratio: bool, said: str) -> None:
    assert quantity(value, unit, ratio=ratio) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (119.4, "119 s"), (120, "2 min"), (7140, "119 min"), (7200, "2 h"), (12_000, "3 h 20 min"), (187_200, "2 d 4 h")],
)
def test_duration(seconds: float, said: str) -> None:
    assert duration(seconds) == said
