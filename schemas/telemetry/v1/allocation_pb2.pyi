from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AllocationChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALLOCATION_CHANGE_KIND_UNSPECIFIED: _ClassVar[AllocationChangeKind]
    ALLOCATION_CHANGE_KIND_OPENED: _ClassVar[AllocationChangeKind]
    ALLOCATION_CHANGE_KIND_CLOSED: _ClassVar[AllocationChangeKind]
    ALLOCATION_CHANGE_KIND_CORRECTED: _ClassVar[AllocationChangeKind]

class OwnerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OWNER_STATE_UNSPECIFIED: _ClassVar[OwnerState]
    OWNER_STATE_KNOWN: _ClassVar[OwnerState]
    OWNER_STATE_IDLE: _ClassVar[OwnerState]
    OWNER_STATE_UNKNOWN: _ClassVar[OwnerState]
    OWNER_STATE_SHARED: _ClassVar[OwnerState]
ALLOCATION_CHANGE_KIND_UNSPECIFIED: AllocationChangeKind
ALLOCATION_CHANGE_KIND_OPENED: AllocationChangeKind
ALLOCATION_CHANGE_KIND_CLOSED: AllocationChangeKind
ALLOCATION_CHANGE_KIND_CORRECTED: AllocationChangeKind
OWNER_STATE_UNSPECIFIED: OwnerState
OWNER_STATE_KNOWN: OwnerState
OWNER_STATE_IDLE: OwnerState
OWNER_STATE_UNKNOWN: OwnerState
OWNER_STATE_SHARED: OwnerState

class Workload(_message.Message):
    __slots__ = ("namespace", "pod", "pod_uid", "container", "workload", "service")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pod: str
    pod_uid: str
    container: str
    workload: str
    service: str
    def __init__(self, namespace: _Optional[str] = ..., pod: _Optional[str] = ..., pod_uid: _Optional[str] = ..., container: _Optional[str] = ..., workload: _Optional[str] = ..., service: _Optional[str] = ...) -> None: ...

class Allocation(_message.Message):
    __slots__ = ("id", "device_uid", "workload", "started_at_ns", "ended_at_ns", "share_ratio", "pid")
    ID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_UID_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_RATIO_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    id: str
    device_uid: str
    workload: Workload
    started_at_ns: int
    ended_at_ns: int
    share_ratio: float
    pid: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, id: _Optional[str] = ..., device_uid: _Optional[str] = ..., workload: _Optional[_Union[Workload, _Mapping]] = ..., started_at_ns: _Optional[int] = ..., ended_at_ns: _Optional[int] = ..., share_ratio: _Optional[float] = ..., pid: _Optional[_Iterable[int]] = ...) -> None: ...

class AllocationSnapshot(_message.Message):
    __slots__ = ("cluster", "node", "source", "taken_at_ns", "open", "ended", "simulated")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TAKEN_AT_NS_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    source: str
    taken_at_ns: int
    open: _containers.RepeatedCompositeFieldContainer[Allocation]
    ended: _containers.RepeatedCompositeFieldContainer[Allocation]
    simulated: bool
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., source: _Optional[str] = ..., taken_at_ns: _Optional[int] = ..., open: _Optional[_Iterable[_Union[Allocation, _Mapping]]] = ..., ended: _Optional[_Iterable[_Union[Allocation, _Mapping]]] = ..., simulated: _Optional[bool] = ...) -> None: ...

class AllocationChange(_message.Message):
    __slots__ = ("cluster", "node", "kind", "at_ns", "allocation", "simulated")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    kind: AllocationChangeKind
    at_ns: int
    allocation: Allocation
    simulated: bool
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., kind: _Optional[_Union[AllocationChangeKind, str]] = ..., at_ns: _Optional[int] = ..., allocation: _Optional[_Union[Allocation, _Mapping]] = ..., simulated: _Optional[bool] = ...) -> None: ...

class Attributed(_message.Message):
    __slots__ = ("uid", "owner_state", "workload", "allocation_id", "utilization_ratio", "memory_used_bytes", "power_watts", "energy_joules", "share_ratio")
    UID_FIELD_NUMBER: _ClassVar[int]
    OWNER_STATE_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_ID_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    POWER_WATTS_FIELD_NUMBER: _ClassVar[int]
    ENERGY_JOULES_FIELD_NUMBER: _ClassVar[int]
    SHARE_RATIO_FIELD_NUMBER: _ClassVar[int]
    uid: str
    owner_state: OwnerState
    workload: Workload
    allocation_id: str
    utilization_ratio: float
    memory_used_bytes: int
    power_watts: float
    energy_joules: float
    share_ratio: float
    def __init__(self, uid: _Optional[str] = ..., owner_state: _Optional[_Union[OwnerState, str]] = ..., workload: _Optional[_Union[Workload, _Mapping]] = ..., allocation_id: _Optional[str] = ..., utilization_ratio: _Optional[float] = ..., memory_used_bytes: _Optional[int] = ..., power_watts: _Optional[float] = ..., energy_joules: _Optional[float] = ..., share_ratio: _Optional[float] = ...) -> None: ...

class AttributedBatch(_message.Message):
    __slots__ = ("cluster", "node", "source", "agent_epoch", "sequence", "taken_at_ns", "interval_ns", "rows", "simulated")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TAKEN_AT_NS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_NS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    source: str
    agent_epoch: int
    sequence: int
    taken_at_ns: int
    interval_ns: int
    rows: _containers.RepeatedCompositeFieldContainer[Attributed]
    simulated: bool
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., source: _Optional[str] = ..., agent_epoch: _Optional[int] = ..., sequence: _Optional[int] = ..., taken_at_ns: _Optional[int] = ..., interval_ns: _Optional[int] = ..., rows: _Optional[_Iterable[_Union[Attributed, _Mapping]]] = ..., simulated: _Optional[bool] = ...) -> None: ...
