"""Builds an OpenTelemetry Collector that takes OTLP and writes it to a file as JSON: some three minutes the first time, nothing after."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.integration.servers import cache, toolchain
from tests.integration.servers.progress import Progress

VERSION = "0.161.0"
"""The release of which the file exporter is served too."""
RECIPE = cache.Recipe("otelcol", VERSION, revision=1)
CORE = "go.opentelemetry.io/collector"
CONTRIB = "github.com/open-telemetry/opentelemetry-collector-contrib"

MANIFEST = f"""\
dist:
  name: otelcol
  version: {VERSION}
  output_path: {{output}}
receivers:
  - gomod: {CORE}/receiver/otlpreceiver v{VERSION}
exporters:
  - gomod: {CONTRIB}/exporter/fileexporter v{VERSION}
"""


def prepare(progress: Progress) -> Path:
    """The cached folder with the program `otelcol`, built where it is not there yet."""

    def build(folder: Path) -> None:
        toolchain.require("otelcol", {"go": ()}, progress)
        _build(folder, progress)

    return cache.obtain(RECIPE, build, on_wait=lambda: progress.line("another process is building it: waiting"))


def _build(folder: Path, progress: Progress) -> None:
    log = folder / cache.BUILD_LOG
    work = folder / "work"
    work.mkdir()

    def run(step: str, args: list[str], env: dict[str, str]) -> None:
        toolchain.run("otelcol", args, cwd=work, log=log, env=env, progress=progress, step=step)

    run("building the collector's builder", ["go", "install", f"{CORE}/cmd/builder@v{VERSION}"], {"GOBIN": str(work)})
    (work / "manifest.yaml").write_text(MANIFEST.format(output=work / "out"), encoding="utf-8")
    run(f"building collector {VERSION}", [str(work / "builder"), "--config", "manifest.yaml"], {})
    (work / "out" / "otelcol").rename(folder / "otelcol")
    shutil.rmtree(work)
