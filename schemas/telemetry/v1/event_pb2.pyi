from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
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
    DEVICE_EVENT_KIND_SXID: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_RECONFIGURED: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_DRIVER_RELOADED: _ClassVar[DeviceEventKind]
    DEVICE_EVENT_KIND_MISSING: _ClassVar[DeviceEventKind]

class EventClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_CLASS_UNSPECIFIED: _ClassVar[EventClass]
    EVENT_CLASS_HARDWARE: _ClassVar[EventClass]
    EVENT_CLASS_DRIVER: _ClassVar[EventClass]
    EVENT_CLASS_APPLICATION: _ClassVar[EventClass]
    EVENT_CLASS_FOLLOWS_ANOTHER: _ClassVar[EventClass]
    EVENT_CLASS_INFORMATIONAL: _ClassVar[EventClass]

class RecommendedAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECOMMENDED_ACTION_UNSPECIFIED: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_NONE: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_RESTART_APPLICATION: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_CHECK_APPLICATION: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_RESET_DEVICE: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_DRAIN_AND_RESET: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_DRAIN_P2P: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_RESTART_FABRIC: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_UPDATE_SOFTWARE: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_RESTART_VM: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_REBOOT_NODE: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_CHECK_HARDWARE: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_CONTACT_SUPPORT: _ClassVar[RecommendedAction]
    RECOMMENDED_ACTION_REPLACE_DEVICE: _ClassVar[RecommendedAction]

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
DEVICE_EVENT_KIND_SXID: DeviceEventKind
DEVICE_EVENT_KIND_RECONFIGURED: DeviceEventKind
DEVICE_EVENT_KIND_DRIVER_RELOADED: DeviceEventKind
DEVICE_EVENT_KIND_MISSING: DeviceEventKind
EVENT_CLASS_UNSPECIFIED: EventClass
EVENT_CLASS_HARDWARE: EventClass
EVENT_CLASS_DRIVER: EventClass
EVENT_CLASS_APPLICATION: EventClass
EVENT_CLASS_FOLLOWS_ANOTHER: EventClass
EVENT_CLASS_INFORMATIONAL: EventClass
RECOMMENDED_ACTION_UNSPECIFIED: RecommendedAction
RECOMMENDED_ACTION_NONE: RecommendedAction
RECOMMENDED_ACTION_RESTART_APPLICATION: RecommendedAction
RECOMMENDED_ACTION_CHECK_APPLICATION: RecommendedAction
RECOMMENDED_ACTION_RESET_DEVICE: RecommendedAction
RECOMMENDED_ACTION_DRAIN_AND_RESET: RecommendedAction
RECOMMENDED_ACTION_DRAIN_P2P: RecommendedAction
RECOMMENDED_ACTION_RESTART_FABRIC: RecommendedAction
RECOMMENDED_ACTION_UPDATE_SOFTWARE: RecommendedAction
RECOMMENDED_ACTION_RESTART_VM: RecommendedAction
RECOMMENDED_ACTION_REBOOT_NODE: RecommendedAction
RECOMMENDED_ACTION_CHECK_HARDWARE: RecommendedAction
RECOMMENDED_ACTION_CONTACT_SUPPORT: RecommendedAction
RECOMMENDED_ACTION_REPLACE_DEVICE: RecommendedAction
CONTEXT_EVENT_KIND_UNSPECIFIED: ContextEventKind
CONTEXT_EVENT_KIND_DEPLOY: ContextEventKind
CONTEXT_EVENT_KIND_RESTART: ContextEventKind
CONTEXT_EVENT_KIND_MAINTENANCE: ContextEventKind
CONTEXT_EVENT_KIND_CONFIGURATION: ContextEventKind

class DeviceEvent(_message.Message):
    __slots__ = ("cluster", "node", "uid", "source", "kind", "at_ns", "severity", "code", "text", "count", "simulated", "id", "bdf", "gpu_instance_id", "compute_instance_id", "process_id", "process_name", "mnemonic", "event_class", "action", "caused_by", "first_at_ns", "last_at_ns", "details", "boot_id")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
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
    BDF_FIELD_NUMBER: _ClassVar[int]
    GPU_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_NAME_FIELD_NUMBER: _ClassVar[int]
    MNEMONIC_FIELD_NUMBER: _ClassVar[int]
    EVENT_CLASS_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CAUSED_BY_FIELD_NUMBER: _ClassVar[int]
    FIRST_AT_NS_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_NS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
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
    bdf: str
    gpu_instance_id: int
    compute_instance_id: int
    process_id: int
    process_name: str
    mnemonic: str
    event_class: EventClass
    action: RecommendedAction
    caused_by: str
    first_at_ns: int
    last_at_ns: int
    details: _containers.ScalarMap[str, str]
    boot_id: str
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., uid: _Optional[str] = ..., source: _Optional[str] = ..., kind: _Optional[_Union[DeviceEventKind, str]] = ..., at_ns: _Optional[int] = ..., severity: _Optional[_Union[Severity, str]] = ..., code: _Optional[int] = ..., text: _Optional[str] = ..., count: _Optional[int] = ..., simulated: _Optional[bool] = ..., id: _Optional[str] = ..., bdf: _Optional[str] = ..., gpu_instance_id: _Optional[int] = ..., compute_instance_id: _Optional[int] = ..., process_id: _Optional[int] = ..., process_name: _Optional[str] = ..., mnemonic: _Optional[str] = ..., event_class: _Optional[_Union[EventClass, str]] = ..., action: _Optional[_Union[RecommendedAction, str]] = ..., caused_by: _Optional[str] = ..., first_at_ns: _Optional[int] = ..., last_at_ns: _Optional[int] = ..., details: _Optional[_Mapping[str, str]] = ..., boot_id: _Optional[str] = ...) -> None: ...

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
