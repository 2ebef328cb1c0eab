"""Builds influxd from its Go module, with its query engine Flux from Rust: minutes the first time, nothing after."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from tests.integration.servers import cache, toolchain
from tests.integration.servers.progress import Progress

VERSION = "2.8.0"
RECIPE = cache.Recipe("influxdb", VERSION, revision=1)
MODULE = "github.com/influxdata/influxdb/v2"
FLUX = "github.com/influxdata/flux"
# Builds libflux when Go asks for it, and hands other questions to the machine's own pkg-config.
PKG_CONFIG = "github.com/influxdata/pkg-config@v0.2.14"
TAGS = "sqlite_foreign_keys,sqlite_json"

PROGRAMS = {
    "go": (),
    "cargo": (),
    "rustc": (),
    "cc": ("gcc", "libc6-dev"),
    "clang": ("clang",),
    "pkg-config": ("pkg-config",),
}

# libflux denies warnings, and a newer compiler has new ones. RUSTFLAGS does not reach build dependencies.
LENIENT_RUSTC = """\
#!/bin/sh
case " $* " in
  *" --cap-lints"*) exec $XPULSE_OUTER_RUSTC_WRAPPER "$@" ;;
  *) exec $XPULSE_OUTER_RUSTC_WRAPPER "$@" --cap-lints=warn ;;
esac
"""


def prepare(progress: Progress) -> Path:
    """The cached folder with the program `influxd`, built where it is not there yet."""

    def build(folder: Path) -> None:
        toolchain.require("influxdb", PROGRAMS, progress)
        _build(folder, progress)

    return cache.obtain(RECIPE, build, on_wait=lambda: progress.line("another process is building it: waiting"))


def _build(folder: Path, progress: Progress) -> None:
    log = folder / cache.BUILD_LOG
    work = folder / "work"
    work.mkdir()

    def run(step: str, args: list[str], cwd: Path, env: dict[str, str]) -> None:
        toolchain.run("influxdb", args, cwd=cwd, log=log, env=env, progress=progress, step=step)

    run("building the pkg-config of libflux", ["go", "install", PKG_CONFIG], work, {"GOBIN": str(work / "bin")})
    progress.line(f"fetching {MODULE} {VERSION}")
    source = _copy_module(work)
    options = ["-tags", TAGS, f"-ldflags=-X main.version=v{VERSION}", "-o", str(folder / "influxd")]
    command = ["go", "build", "-v", *options, "./cmd/influxd"]
    try:
        run(f"building {VERSION}, Flux in Rust first", command, source, _environment(work))
    except toolchain.BuildFailed:
        _drop_torn_flux(work)
        raise
    shutil.rmtree(work)


def _copy_module(work: Path) -> Path:
    """A writable copy of the module: it has `replace` lines, which only a main module may have."""
    listed = toolchain.ask("influxdb", ["go", "mod", "download", "-json", f"{MODULE}@v{VERSION}"], cwd=work)
    source = work / "influxdb"
    shutil.copytree(json.loads(listed)["Dir"], source)
    for path, _, files in os.walk(source):
        for place in (Path(path), *(Path(path, name) for name in files)):
            place.chmod(place.stat().st_mode | 0o200)
    return source


def _environment(work: Path) -> dict[str, str]:
    wrapper = work / "lenient-rustc"
    wrapper.write_text(LENIENT_RUSTC, encoding="utf-8")
    wrapper.chmod(0o755)
    env = {
        "PKG_CONFIG": str(work / "bin" / "pkg-config"),
        "RUSTC_WRAPPER": str(wrapper),
        "XPULSE_OUTER_RUSTC_WRAPPER": os.environ.get("RUSTC_WRAPPER", ""),
    }
    if "RUSTUP_TOOLCHAIN" not in os.environ and shutil.which("rustup"):
        # libflux pins an old Rust by a toolchain file; this names the one that is here.
        env["RUSTUP_TOOLCHAIN"] = toolchain.ask("influxdb", ["rustup", "show", "active-toolchain"], cwd=work).split()[0]
    return env


def _drop_torn_flux(work: Path) -> None:
    """Remove libflux's copies in Go's build cache which have no library: one torn in the making is never mended."""
    go_cache = Path(toolchain.ask("influxdb", ["go", "env", "GOCACHE"], cwd=work).strip())
    for copy in go_cache.glob(f"pkgconfig/{FLUX}@*"):
        if not any(copy.glob("libflux/target/*/release/libflux.a")):
            shutil.rmtree(copy)
