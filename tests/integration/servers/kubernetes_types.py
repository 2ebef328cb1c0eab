"""Checks a manifest against Kubernetes' own types, strictly: a field that does not exist or has another type is an error. No server."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.integration.servers import cache, toolchain
from tests.integration.servers.progress import Progress

VERSION = "0.34.2"
"""Of client-go, which is Kubernetes 1.34.2."""
RECIPE = cache.Recipe("kubernetes-types", VERSION, revision=1)

MODULE = f"""\
module check

go 1.24

require (
	k8s.io/apimachinery v{VERSION}
	k8s.io/client-go v{VERSION}
)
"""

PROGRAM = """\
package main

import (
	"bytes"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	code := 0
	for i, document := range bytes.Split(data, []byte("\\n---\\n")) {
		_, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			fmt.Fprintf(os.Stderr, "document %d: %v\\n", i+1, err)
			code = 1
			continue
		}
		fmt.Println(kind.Kind)
	}
	os.Exit(code)
}
"""


def check(path: Path) -> tuple[bool, str]:
    """Whether every document is valid; the kinds, one a line, or what is wrong."""
    program = prepare(Progress("kubernetes-types")) / "check"
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr


def prepare(progress: Progress) -> Path:
    """The cached folder with the program `check`, built where it is not there yet."""

    def build(folder: Path) -> None:
        toolchain.require("kubernetes-types", {"go": ()}, progress)
        work = folder / "work"
        work.mkdir()
        (work / "go.mod").write_text(MODULE, encoding="utf-8")
        (work / "main.go").write_text(PROGRAM, encoding="utf-8")
        toolchain.run(
            "kubernetes-types",
            ["go", "build", "-mod=mod", "-o", str(folder / "check"), "."],
            cwd=work,
            log=folder / cache.BUILD_LOG,
            progress=progress,
            step=f"building a checker from Kubernetes' types {VERSION}",
        )
        shutil.rmtree(work)

    return cache.obtain(RECIPE, build, on_wait=lambda: progress.line("another process is building it: waiting"))
