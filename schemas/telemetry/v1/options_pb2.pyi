from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MetricKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    METRIC_KIND_UNSPECIFIED: _ClassVar[MetricKind]
    METRIC_KIND_GAUGE: _ClassVar[MetricKind]
    METRIC_KIND_COUNTER: _ClassVar[MetricKind]
    METRIC_KIND_SET: _ClassVar[MetricKind]

class Cadence(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CADENCE_UNSPECIFIED: _ClassVar[Cadence]
    CADENCE_FAST: _ClassVar[Cadence]
    CADENCE_SLOW: _ClassVar[Cadence]
METRIC_KIND_UNSPECIFIED: MetricKind
METRIC_KIND_GAUGE: MetricKind
METRIC_KIND_COUNTER: MetricKind
METRIC_KIND_SET: MetricKind
CADENCE_UNSPECIFIED: Cadence
CADENCE_FAST: Cadence
CADENCE_SLOW: Cadence
METRIC_FIELD_NUMBER: _ClassVar[int]
metric: _descriptor.FieldDescriptor

class MetricOptions(_message.Message):
    __slots__ = ("unit", "kind", "cadence", "max_age_seconds", "min", "max", "otel_name", "prometheus_name", "meaning", "board_level", "bits", "states", "otel_attributes")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CADENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    OTEL_NAME_FIELD_NUMBER: _ClassVar[int]
    PROMETHEUS_NAME_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    BOARD_LEVEL_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    OTEL_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    unit: str
    kind: MetricKind
    cadence: Cadence
    max_age_seconds: float
    min: float
    max: float
    otel_name: str
    prometheus_name: str
    meaning: str
    board_level: bool
    bits: str
    states: str
    otel_attributes: str
    def __init__(self, unit: _Optional[str] = ..., kind: _Optional[_Union[MetricKind, str]] = ..., cadence: _Optional[_Union[Cadence, str]] = ..., max_age_seconds: _Optional[float] = ..., min: _Optional[float] = ..., max: _Optional[float] = ..., otel_name: _Optional[str] = ..., prometheus_name: _Optional[str] = ..., meaning: _Optional[str] = ..., board_level: _Optional[bool] = ..., bits: _Optional[str] = ..., states: _Optional[str] = ..., otel_attributes: _Optional[str] = ...) -> None: ...
