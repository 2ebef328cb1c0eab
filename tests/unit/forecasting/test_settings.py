"""Settings refuse what cannot work, naming it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from forecasting.settings import Forecasting, demo_profile
from forecasting.targets import Target


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"min_history_steps": 300}, "min_history_steps"),
        ({"min_trend_steps": 25}, "min_trend_steps"),
        ({"recede_probability_ratio": 0.5}, "flap"),
        ({"targets": ()}, "targets is empty"),
        ({"horizon_steps": 0}, "horizon_steps"),
        ({"horizont": 3}, "horizont"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Forecasting(**values)


def test_a_metric_must_exist() -> None:
    with pytest.raises(ValidationError, match="memory_usage"):
        Target(metric="memory_usage")


def test_the_demo_fits_into_a_run_of_two_minutes() -> None:
    demo = demo_profile()
    assert demo.step_seconds * demo.min_history_steps < 20
    assert demo.every_seconds * demo.raise_rounds + demo.min_trend_steps * demo.step_seconds <= 12


def test_every_setting_is_documented() -> None:
    for model in (Forecasting, Target):
        assert all(field.description for field in model.model_fields.values())


def test_importing_the_worker_loads_no_statistics_library() -> None:
    script = "import sys, forecasting.worker; sys.exit(any(m in sys.modules for m in ('statsmodels', 'pandas', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], check=False).returncode == 0
