from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEVERITY_UNSPECIFIED: _ClassVar[Severity]
    SEVERITY_INFO: _ClassVar[Severity]
    SEVERITY_WARNING: _ClassVar[Severity]
    SEVERITY_CRITICAL: _ClassVar[Severity]

class DeviceEventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEVICE_EVENT_KIND_UNSPECIFIED: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_XID: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_VENDOR_LOG: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_ADDED: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_LOST: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_RETURNED: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_HANG: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_RECOVERED: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_MAINTENANCE: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_MAINTENANCE_ENDED: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_SOURCE_UNAVAILABLE: _ClassVar[DeviceEventKind]

class ContextEventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTEXT_EVENT_KIND_UNSPECIFIED: _ClassVar[ContextEventKind]
    CONTEXT_EVENT_KIND_DEPLOY: _ClassVar[ContextEventKind]
    CONTEXT_EVENT_KIND_RESTART: _ClassVar[ContextEventKind]
    CONTEXT_EVENT_KIND_MAINTENANCE: _ClassVar[ContextEventKind]
    CONTEXT_EVENT_KIND_CONFIGURATION: _ClassVar[ContextEventKind]
SEVERITY_UNSPECIFIED: Severity
SEVERITY_INFO: Severity
SEVERITY_WARNING: Severity
SEVERITY_CRITICAL: Severity
DEVICE_EVENT_KIND_UNSPECIFIED: DeviceEventKind
DEVICE_EVENT_KIND_XID: DeviceEventKind
DEVICE_EVENT_KIND_VENDOR_LOG: DeviceEventKind
DEVICE_EVENT_KIND_ADDED: DeviceEventKind
DEVICE_EVENT_KIND_LOST: DeviceEventKind
DEVICE_EVENT_KIND_RETURNED: DeviceEventKind
DEVICE_EVENT_KIND_HANG: DeviceEventKind
DEVICE_EVENT_KIND_RECOVERED: DeviceEventKind
DEVICE_EVENT_KIND_MAINTENANCE: DeviceEventKind
DEVICE_EVENT_KIND_MAINTENANCE_ENDED: DeviceEventKind
DEVICE_EVENT_KIND_SOURCE_UNAVAILABLE: DeviceEventKind
CONTEXT_EVENT_KIND_UNSPECIFIED: ContextEventKind
CONTEXT_EVENT_KIND_DEPLOY: ContextEventKind
CONTEXT_EVENT_KIND_RESTART: ContextEventKind
CONTEXT_EVENT_KIND_MAINTENANCE: ContextEventKind
CONTEXT_EVENT_KIND_CONFIGURATION: ContextEventKind

class DeviceEvent(_message.Message):
    __slots__ = ("cluster", "node", "uid", "source", "kind", "at_ns", "severity", "code", "text", "count", "simulated", "id")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    uid: str
    source: str
    kind: DeviceEventKind
    at_ns: int
    severity: Severity
    code: int
    text: str
    count: int
    simulated: bool
    id: str
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., uid: _Optional[str] = ..., source: _Optional[str] = ..., kind: _Optional[_Union[DeviceEventKind, str]] = ..., at_ns: _Optional[int] = ..., severity: _Optional[_Union[Severity, str]] = ..., code: _Optional[int] = ..., text: _Optional[str] = ..., count: _Optional[int] = ..., simulated: _Optional[bool] = ..., id: _Optional[str] = ...) -> None: ...

class ContextEvent(_message.Message):
    __slots__ = ("entity", "cluster", "node", "kind", "at_ns", "until_ns", "text", "simulated", "id")
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    entity: str
    cluster: str
    node: str
    kind: ContextEventKind
    at_ns: int
    until_ns: int
    text: str
    simulated: bool
    id: str
    def __init__(self, entity: _Optional[str] = ..., cluster: _Optional[str] = ..., node: _Optional[str] = ..., kind: _Optional[_Union[ContextEventKind, str]] = ..., at_ns: _Optional[int] = ..., until_ns: _Optional[int] = ..., text: _Optional[str] = ..., simulated: _Optional[bool] = ..., id: _Optional[str] = ...) -> None: ...
