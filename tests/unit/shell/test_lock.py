"""One stack a state folder, and a folder that cannot hold one is said to be so."""

from pathlib import Path

import pytest

from xpulse.errors import UsageError
from xpulse.local.lock import StackLock


def test_a_second_stack_is_refused_and_a_third_after_the_first_is_not(tmp_path: Path) -> None:
    with StackLock(tmp_path), pytest.raises(UsageError, match="already running"), StackLock(tmp_path):
        pass
    with StackLock(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be written.*XPULSE_STATE_DIR"), StackLock(tmp_path / "missing"):
        pass
