from schemas.telemetry.v1 import allocation_pb2 as _allocation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Histogram(_message.Message):
    __slots__ = ("bound", "count", "sum")
    BOUND_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SUM_FIELD_NUMBER: _ClassVar[int]
    bound: _containers.RepeatedScalarFieldContainer[float]
    count: _containers.RepeatedScalarFieldContainer[int]
    sum: float
    def __init__(self, bound: _Optional[_Iterable[float]] = ..., count: _Optional[_Iterable[int]] = ..., sum: _Optional[float] = ...) -> None: ...

class InferenceWindow(_message.Message):
    __slots__ = ("cluster", "node", "workload", "engine", "model", "started_at_ns", "ended_at_ns", "device_uid", "requests", "prompt_tokens", "generated_tokens", "requests_running", "requests_waiting", "kv_cache_used_ratio", "time_to_first_token_seconds", "inter_token_latency_seconds", "simulated")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_UID_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    GENERATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_WAITING_FIELD_NUMBER: _ClassVar[int]
    KV_CACHE_USED_RATIO_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_FIRST_TOKEN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    INTER_TOKEN_LATENCY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    workload: _allocation_pb2.Workload
    engine: str
    model: str
    started_at_ns: int
    ended_at_ns: int
    device_uid: _containers.RepeatedScalarFieldContainer[str]
    requests: int
    prompt_tokens: int
    generated_tokens: int
    requests_running: float
    requests_waiting: float
    kv_cache_used_ratio: float
    time_to_first_token_seconds: Histogram
    inter_token_latency_seconds: Histogram
    simulated: bool
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., workload: _Optional[_Union[_allocation_pb2.Workload, _Mapping]] = ..., engine: _Optional[str] = ..., model: _Optional[str] = ..., started_at_ns: _Optional[int] = ..., ended_at_ns: _Optional[int] = ..., device_uid: _Optional[_Iterable[str]] = ..., requests: _Optional[int] = ..., prompt_tokens: _Optional[int] = ..., generated_tokens: _Optional[int] = ..., requests_running: _Optional[float] = ..., requests_waiting: _Optional[float] = ..., kv_cache_used_ratio: _Optional[float] = ..., time_to_first_token_seconds: _Optional[_Union[Histogram, _Mapping]] = ..., inter_token_latency_seconds: _Optional[_Union[Histogram, _Mapping]] = ..., simulated: _Optional[bool] = ...) -> None: ...
