"""Who asks for the driver, until when, and that nobody keeps it away for ever."""

from __future__ import annotations

from collectors.maintenance import DEFAULT_LABELS, Maintenance, asks


def test_the_oldest_request_stands_until_all_are_over() -> None:
    m = Maintenance(100.0)
    m.see("signal", "", 0.0)
    m.see("file", "upgrade", 1.0)
    m.see("signal", "SIGUSR2", 2.0)
    assert m.stands(3.0) == "file: upgrade"
    m.see("file", "", 4.0)
    assert m.stands(4.0) == "signal: SIGUSR2"
    m.see("signal", "", 5.0)
    assert m.stands(5.0) == ""


def test_a_request_nobody_ends_is_over_at_the_maximum_and_said_once() -> None:
    m = Maintenance(100.0)
    for at in (0.0, 50.0, 99.9):
        m.see("file", "forgotten", at)
        assert m.stands(at)
        assert m.overdue(at) == []
    for at in (100.0, 101.0, 500.0):
        m.see("file", "forgotten", at)
        assert m.stands(at) == ""
    assert (m.overdue(500.0), m.overdue(501.0)) == (["file: forgotten"], [])
    m.see("file", "", 502.0)
    m.see("file", "forgotten", 503.0)  # made anew: a new request
    assert m.stands(503.0) == "file: forgotten"


def test_a_request_with_another_reason_is_a_new_one() -> None:
    m = Maintenance(100.0)
    m.see("label", "mig=pending", 0.0)
    m.see("label", "upgrade=drain-required", 99.0)
    assert m.stands(150.0) == "label: upgrade=drain-required"


def test_labels_that_hold_the_driver_ask_and_those_that_announce_do_not() -> None:
    assert asks({"nvidia.com/mig.config.state": "pending"}, DEFAULT_LABELS) == "nvidia.com/mig.config.state=pending"
    assert asks({"nvidia.com/mig.config.state": "success"}, DEFAULT_LABELS) == ""
    assert asks({"nvidia.com/gpu-driver-upgrade-state": "upgrade-required"}, DEFAULT_LABELS) == ""
    assert asks({"nvidia.com/gpu-driver-upgrade-state": "pod-restart-required"}, DEFAULT_LABELS) != ""
    assert asks({}, DEFAULT_LABELS) == ""
