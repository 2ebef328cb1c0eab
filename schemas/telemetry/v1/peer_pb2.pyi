from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PeerStats(_message.Message):
    __slots__ = ("cluster", "node", "model", "taken_at_ns", "interval_ns", "simulated", "metric", "devices")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TAKEN_AT_NS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_NS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    model: str
    taken_at_ns: int
    interval_ns: int
    simulated: bool
    metric: _containers.RepeatedScalarFieldContainer[str]
    devices: _containers.RepeatedCompositeFieldContainer[PeerDevice]
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., model: _Optional[str] = ..., taken_at_ns: _Optional[int] = ..., interval_ns: _Optional[int] = ..., simulated: _Optional[bool] = ..., metric: _Optional[_Iterable[str]] = ..., devices: _Optional[_Iterable[_Union[PeerDevice, _Mapping]]] = ...) -> None: ...

class PeerDevice(_message.Message):
    __slots__ = ("uid", "index", "mean", "samples")
    UID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    uid: str
    index: int
    mean: _containers.RepeatedScalarFieldContainer[float]
    samples: int
    def __init__(self, uid: _Optional[str] = ..., index: _Optional[int] = ..., mean: _Optional[_Iterable[float]] = ..., samples: _Optional[int] = ...) -> None: ...
