"""Rules for other vendors' lines: what is shipped reads what it should, what a site writes is checked before it can do harm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.kernel.lines import LineRule, Lines, chosen, shipped

ALL = Lines(chosen({}, tuple(shipped()), ()))
UNSEEN = {"amd_ring_timeout", "intel_gpu_hang", "intel_gpu_error"}
OWN = {
    "vendor": "acme",
    "contains": "acme",
    "pattern": r"acme (?P<bdf>{bdf}): code (?P<code>[0-9]+) pid (?P<pid>[0-9]+) (?P<process>\S+): (?P<detail>.*)",
    "says": "It broke.",
    "class": "hardware",
    "action": "reset_device",
    "severity": "critical",
}


def own(**more: Any) -> LineRule:
    return LineRule.model_validate(OWN | more)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "amdgpu 0000:1c:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
            ("amd_uncorrectable", "0000:1c:00.0", -1, "ERREVENT_ATHUB_INTERRUPT"),
        ),
        (
            "amdgpu 0000:42:00.0: {1}[Hardware Error]: Accelerator Check Architecture events logged",
            ("amd_hardware_error", "0000:42:00.0", -1, "Accelerator Check Architecture events logged"),
        ),
        ("amdgpu: Fatal error during GPU init", ("amd_init_failed", "", -1, "amdgpu: Fatal error during GPU init")),
        ("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=3", ("amd_ring_timeout", "", -1, "gfx")),
        ('habanalabs hl3: Received H/W interrupt 417 ["TPC0"]', ("gaudi_interrupt hl3", "", 417, "TPC0")),
        ("habanalabs hl3: MME0 err cause: parity", ("gaudi_error_cause hl3", "", -1, "parity")),
        ("habanalabs hl3: Command submission 12 has not finished in time!", ("gaudi_stuck hl3", "", -1, "12")),
        ("i915 0000:03:00.0: [drm] GPU HANG: ecode 12:1:85dffffb", ("intel_gpu_hang", "0000:03:00.0", -1, "12:1:85dffffb")),
        ("xe 0000:03:00.0: [drm] *ERROR* GT0: reset", ("intel_gpu_error", "0000:03:00.0", -1, "GT0: reset")),
        ("neuron:nd0: DMA failed", ("neuron_error", "", -1, "neuron:nd0: DMA failed")),
    ],
)
def test_lines_of_other_vendors(line: str, wanted: tuple[str, str, int, str]) -> None:
    found = ALL.read(1, 1, line)
    assert found is not None
    kind, bdf, code, apart = found.key
    assert (kind, (apart.strip(), bdf, code, found.text)) == ("vendor_log", wanted)


def test_lines_that_were_never_seen_are_off() -> None:
    off = {name for name, rule in shipped().items() if not rule.enabled}
    assert off == UNSEEN | {name for name in shipped() if name.split("_")[0] not in ("amd", "intel", "gaudi")}
    assert Lines(chosen({}, (), ())).read(1, 1, "i915 0000:03:00.0: [drm] GPU HANG: ecode 12:1:85dffffb") is None
    assert Lines(chosen({}, ("intel_gpu_hang",), ())).read(1, 1, "i915 0000:03:00.0: [drm] GPU HANG: ecode 12:1:85dffffb") is not None
    assert "amd_uncorrectable" not in chosen({}, (), ("amd_uncorrectable",))


def test_a_rule_of_the_site() -> None:
    found = Lines({"acme_broken": own()}).read(1, 2, "[   1.5] acme 0000:0A:00.0: code 12 pid 34 train.py: it smokes")
    assert found is not None
    assert found.key == ("vendor_log", "0000:0a:00.0", 12, "acme_broken ")
    assert (found.pid, found.process, found.text, found.judge().says) == (34, "train.py", "it smokes", "It broke.")


def test_a_rule_of_the_site_replaces_ours_of_the_same_name() -> None:
    assert chosen({"amd_uncorrectable": own()}, (), ())["amd_uncorrectable"].vendor == "acme"


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"pattern": "acme ("}, "not a pattern"),
        ({"pattern": "acme {x}"}, "double the braces"),
        ({"pattern": "acme (?P<colour>.*)"}, "no group colour; known are: bdf"),
        ({"pattern": "acme (a+)+b"}, "for ever on one line"),
        ({"pattern": "acme ((a|b)*)*"}, "for ever on one line"),
        ({"severity": "info"}, "severity info does not fit action reset_device"),
        ({"contains": ""}, "contains"),
        ({"class": "bad"}, "class"),
        ({"vendor": "A b"}, "vendor"),
    ],
)
def test_a_wrong_rule_is_refused(more: dict[str, str], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        own(**more)


@given(st.text(max_size=100), st.sampled_from(sorted(rule.contains for rule in shipped().values())))
def test_no_text_raises(text: str, contains: str) -> None:
    for line in (
        text,
        text + contains + text,
        f"amdgpu 0000:1c:00.0: {text}{contains}",
        f'habanalabs hl3: Received H/W interrupt {text} ["',
    ):
        found = ALL.read(1, 1, line)
        assert found is None or -1 <= found.key[2] < 2**32
