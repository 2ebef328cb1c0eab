"""Regenerates the protobuf code and the frozen descriptor, or (--check) proves that the committed ones are current.

`python -m schemas.generate` writes `*_pb2.py`, `*_pb2.pyi` and, with `--freeze`, `descriptor.binpb`: the released field
numbers and types that `tests/contracts/test_proto_compatibility.py` holds later edits against.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("schemas/telemetry/v1")
FROZEN = ROOT / FOLDER / "descriptor.binpb"


def protos() -> list[str]:
    """Paths of every .proto file, relative to the repository's root."""
    return sorted(str(p.relative_to(ROOT)) for p in (ROOT / FOLDER).glob("*.proto"))


def generate(target: Path, descriptor: Path | None = None) -> None:
    """Write the generated modules below `target`; raises RuntimeError with protoc's exit code."""
    from grpc_tools import protoc  # a development dependency: never imported at run time

    arguments = ["protoc", f"-I{ROOT}", f"-I{Path(protoc.__file__).parent / '_proto'}"]
    arguments += [f"--python_out={target}", f"--pyi_out={target}"]
    if descriptor is not None:
        arguments += ["--include_imports", f"--descriptor_set_out={descriptor}"]
    code = protoc.main([*arguments, *protos()])
    if code != 0:
        raise RuntimeError(f"protoc ended with {code}; its message above names the file and line")


def stale() -> list[str]:
    """Names of generated files that differ from what the .proto files give now."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        fresh = sorted((Path(folder) / FOLDER).glob("*_pb2.py*"))
        return [f.name for f in fresh if not (ROOT / FOLDER / f.name).exists() or f.read_bytes() != (ROOT / FOLDER / f.name).read_bytes()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where a file is stale")
    parser.add_argument("--freeze", action="store_true", help="also write descriptor.binpb (at a release)")
    options = parser.parse_args()
    if options.check:
        if names := stale():
            sys.stderr.write(f"stale generated code: {', '.join(names)}; run: make proto\n")
            return 1
        return 0
    generate(ROOT, FROZEN if options.freeze else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
