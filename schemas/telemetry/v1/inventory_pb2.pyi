from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeviceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEVICE_KIND_UNSPECIFIED: _ClassVar[DeviceKind]
    DEVICE_KIND_ACCELERATOR: _ClassVar[DeviceKind]
    DEVICE_KIND_PARTITION: _ClassVar[DeviceKind]
    DEVICE_KIND_NIC_PORT: _ClassVar[DeviceKind]
    DEVICE_KIND_SWITCH: _ClassVar[DeviceKind]
    DEVICE_KIND_HOST: _ClassVar[DeviceKind]
    DEVICE_KIND_PSU: _ClassVar[DeviceKind]
DEVICE_KIND_UNSPECIFIED: DeviceKind
DEVICE_KIND_ACCELERATOR: DeviceKind
DEVICE_KIND_PARTITION: DeviceKind
DEVICE_KIND_NIC_PORT: DeviceKind
DEVICE_KIND_SWITCH: DeviceKind
DEVICE_KIND_HOST: DeviceKind
DEVICE_KIND_PSU: DeviceKind

class DeviceInfo(_message.Message):
    __slots__ = ("uid", "vendor", "model", "serial", "kind", "index", "bdf", "slot", "parent_uid", "driver_version", "firmware_version", "board_part", "power_limit_max_watts", "cluster", "node", "simulated")
    UID_FIELD_NUMBER: _ClassVar[int]
    VENDOR_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    BDF_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    PARENT_UID_FIELD_NUMBER: _ClassVar[int]
    DRIVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    FIRMWARE_VERSION_FIELD_NUMBER: _ClassVar[int]
    BOARD_PART_FIELD_NUMBER: _ClassVar[int]
    POWER_LIMIT_MAX_WATTS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    uid: str
    vendor: str
    model: str
    serial: str
    kind: DeviceKind
    index: int
    bdf: str
    slot: str
    parent_uid: str
    driver_version: str
    firmware_version: str
    board_part: str
    power_limit_max_watts: float
    cluster: str
    node: str
    simulated: bool
    def __init__(self, uid: _Optional[str] = ..., vendor: _Optional[str] = ..., model: _Optional[str] = ..., serial: _Optional[str] = ..., kind: _Optional[_Union[DeviceKind, str]] = ..., index: _Optional[int] = ..., bdf: _Optional[str] = ..., slot: _Optional[str] = ..., parent_uid: _Optional[str] = ..., driver_version: _Optional[str] = ..., firmware_version: _Optional[str] = ..., board_part: _Optional[str] = ..., power_limit_max_watts: _Optional[float] = ..., cluster: _Optional[str] = ..., node: _Optional[str] = ..., simulated: _Optional[bool] = ...) -> None: ...

class NodeInfo(_message.Message):
    __slots__ = ("cluster", "node", "host_serial", "labels", "boot_id", "agent_version", "kernel", "simulated")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    HOST_SERIAL_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    host_serial: str
    labels: _containers.ScalarMap[str, str]
    boot_id: str
    agent_version: str
    kernel: str
    simulated: bool
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., host_serial: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., boot_id: _Optional[str] = ..., agent_version: _Optional[str] = ..., kernel: _Optional[str] = ..., simulated: _Optional[bool] = ...) -> None: ...

class InventoryRecord(_message.Message):
    __slots__ = ("observed_at_ns", "device", "node")
    OBSERVED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    observed_at_ns: int
    device: DeviceInfo
    node: NodeInfo
    def __init__(self, observed_at_ns: _Optional[int] = ..., device: _Optional[_Union[DeviceInfo, _Mapping]] = ..., node: _Optional[_Union[NodeInfo, _Mapping]] = ...) -> None: ...
