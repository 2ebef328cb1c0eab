"""One role that gave up leaves the rest of the stack alone; one with a wrong setting ends it."""

from pathlib import Path

import pytest

from tests.unit.shell.test_child import wait_until
from xpulse.bus.rejects import TooManyRejected
from xpulse.errors import ProblemFound
from xpulse.local.child import Child, Spec
from xpulse.local.plan import Options, Where
from xpulse.local.supervisor import Supervisor
from xpulse.settings import Settings


def supervised(tmp_path: Path, code: int, notes: list[str]) -> Supervisor:
    """Two roles: one that ended with `code` and a reason, one that lives."""
    where = Where(brokers="127.0.0.1:1", embedded=False, store="sqlite", state=tmp_path, cluster="local")
    made = Supervisor(Settings(), Options(), where, notes.append)
    ends = f"import sys; sys.stderr.write('xpulse: detect: 501 of the last 1000 records were rejected\\n'); sys.exit({code})"
    made.children = [
        Child(Spec(name, ("-c", text)), tmp_path / f"{name}.log")
        for name, text in (("detect", ends), ("alert", "import time; time.sleep(60)"))
    ]
    for each in made.children:
        each.start(0.0)
    assert wait_until(made.children[0].gone)
    return made


def test_a_role_that_gave_up_is_not_started_again_and_the_rest_goes_on(tmp_path: Path) -> None:
    notes: list[str] = []
    stack = supervised(tmp_path, TooManyRejected.exit_code, notes)
    try:
        for now in (1.0, 50.0, 100.0):
            stack.step(now, rows=True)
        detect, alert = stack.children
        assert (detect.state, detect.restarts, alert.state) == ("failed", 0, "running")
        assert len(notes) == 1
        assert "501 of the last 1000 records were rejected" in notes[0]
    finally:
        stack.stop()


def test_a_wrong_setting_ends_the_stack(tmp_path: Path) -> None:
    stack = supervised(tmp_path, 2, [])
    try:
        with pytest.raises(ProblemFound, match="detect ended with 2"):
            stack.step(1.0, rows=True)
    finally:
        stack.stop()
