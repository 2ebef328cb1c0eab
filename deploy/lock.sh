#!/usr/bin/env bash
# Derives the image's two lock files from requirements.lock: what runs, and what builds the wheel. Needs uv; run it after `make lock`.
set -euo pipefail
cd "$(dirname "$0")/.."
pin() {
  out=$1
  shift
  uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --generate-hashes \
    --constraints requirements.lock --output-file "$out.new" "$@" >/dev/null
  { echo "# Derived from requirements.lock by deploy/lock.sh; tests/contracts/test_deploy.py holds the two together."; cat "$out.new"; } >"$out"
  rm "$out.new"
}
pin deploy/runtime.lock --all-extras pyproject.toml
pin deploy/build.lock - <<<"setuptools"
