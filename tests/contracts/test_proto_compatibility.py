"""No field number is ever reused or retyped: the committed descriptor of the last release is held against today's."""

import pytest
from google.protobuf import descriptor_pb2

from schemas.generate import FROZEN, stale
from schemas.telemetry import v1


def fields(message: descriptor_pb2.DescriptorProto, prefix: str = "") -> dict[tuple[str, int], tuple[str, int, int, str]]:
    name = f"{prefix}{message.name}"
    found = {(name, f.number): (f.name, int(f.type), int(f.label), f.type_name) for f in message.field}
    for nested in message.nested_type:
        found |= fields(nested, f"{name}.")
    return found


def collect(files: list[descriptor_pb2.FileDescriptorProto]) -> tuple[dict[tuple[str, int], tuple[str, int, int, str]], dict[str, int]]:
    messages: dict[tuple[str, int], tuple[str, int, int, str]] = {}
    enums: dict[str, int] = {}
    for file in files:
        if file.package != "xpulse.telemetry.v1":
            continue
        for message in file.message_type:
            messages |= fields(message)
        for enum in file.enum_type:
            enums |= {f"{enum.name}.{value.name}": value.number for value in enum.value}
    return messages, enums


def today() -> list[descriptor_pb2.FileDescriptorProto]:
    pool = v1.SampleBatch.DESCRIPTOR.file.pool
    names = {getattr(v1, name).DESCRIPTOR.file.name for name in v1.__all__ if hasattr(getattr(v1, name), "DESCRIPTOR")}
    found = []
    for name in sorted(names):
        proto = descriptor_pb2.FileDescriptorProto()
        pool.FindFileByName(name).CopyToProto(proto)
        found.append(proto)
    return found


def problems(frozen: list[descriptor_pb2.FileDescriptorProto], current: list[descriptor_pb2.FileDescriptorProto]) -> list[str]:
    old_fields, old_enums = collect(frozen)
    new_fields, new_enums = collect(current)
    found = [f"{k[0]} field {k[1]} {v[0]}: was {v}, is {new_fields.get(k)}" for k, v in old_fields.items() if new_fields.get(k) != v]
    return found + [f"{k}: was {v}, is {new_enums.get(k)}" for k, v in old_enums.items() if new_enums.get(k) != v]


@pytest.fixture
def frozen() -> list[descriptor_pb2.FileDescriptorProto]:
    return list(descriptor_pb2.FileDescriptorSet.FromString(FROZEN.read_bytes()).file)


def test_nothing_released_was_changed(frozen: list[descriptor_pb2.FileDescriptorProto]) -> None:
    assert len(collect(frozen)[0]) > 200
    assert problems(frozen, today()) == []


def test_the_check_sees_a_reused_number(frozen: list[descriptor_pb2.FileDescriptorProto]) -> None:
    changed = today()
    sample = next(m for f in changed for m in f.message_type if m.name == "DeviceSample")
    power = next(f for f in sample.field if f.name == "power_watts")
    power.name, power.type = "volts", descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE
    assert any("power_watts" in problem for problem in problems(frozen, changed))


def test_generated_code_is_current() -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools is a development dependency")
    assert stale() == []
