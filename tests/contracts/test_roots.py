"""The six import roots are ours alone in this environment, and the agent stays light."""

import subprocess
import sys
from importlib.metadata import distributions

ROOTS = {"schemas", "collectors", "streams", "sinks", "forecasting", "xpulse"}
HEAVY = ("faust", "aiokafka", "statsmodels", "pandas", "scipy")


def owners() -> dict[str, set[str]]:
    """Distribution names per top-level name they install."""
    found: dict[str, set[str]] = {}
    for distribution in distributions():
        name = (distribution.metadata["Name"] or "?").lower()
        tops = set((distribution.read_text("top_level.txt") or "").split())
        tops |= {file.parts[0] for file in distribution.files or () if len(file.parts) > 1}
        for top in tops:
            found.setdefault(top, set()).add(name)
    return found


def test_no_other_distribution_owns_our_roots() -> None:
    found = owners()
    assert found.get("pytest"), "the look-up finds other packages"
    assert {root: names - {"xpulse"} for root, names in found.items() if root in ROOTS and names - {"xpulse"}} == {}


def imported_by(modules: str) -> set[str]:
    code = f"import sys\nfor name in {modules!r}.split(): __import__(name)\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_the_agent_imports_nothing_heavy() -> None:
    loaded = imported_by(
        "xpulse.cli.agent xpulse.run.agent collectors.agent collectors.nvidia.plugin collectors.simulated.plugin xpulse.bus.agent"
    )
    assert "collectors.agent" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_the_shell_starts_without_the_parts() -> None:
    loaded = imported_by("xpulse.cli.main")
    assert not loaded & {"confluent_kafka", "faust", "numpy", "pydantic", "rich"}
