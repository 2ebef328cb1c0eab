from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
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

class TopologyPath(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOPOLOGY_PATH_UNSPECIFIED: _ClassVar[TopologyPath]
    TOPOLOGY_PATH_INTERNAL: _ClassVar[TopologyPath]
    TOPOLOGY_PATH_SINGLE_SWITCH: _ClassVar[TopologyPath]
    TOPOLOGY_PATH_MULTIPLE_SWITCHES: _ClassVar[TopologyPath]
    TOPOLOGY_PATH_HOST_BRIDGE: _ClassVar[TopologyPath]
    TOPOLOGY_PATH_NUMA_NODE: _ClassVar[TopologyPath]
    TOPOLOGY_PATH_SYSTEM: _ClassVar[TopologyPath]
DEVICE_KIND_UNSPECIFIED: DeviceKind
DEVICE_KIND_ACCELERATOR: DeviceKind
DEVICE_KIND_PARTITION: DeviceKind
DEVICE_KIND_NIC_PORT: DeviceKind
DEVICE_KIND_SWITCH: DeviceKind
DEVICE_KIND_HOST: DeviceKind
DEVICE_KIND_PSU: DeviceKind
TOPOLOGY_PATH_UNSPECIFIED: TopologyPath
TOPOLOGY_PATH_INTERNAL: TopologyPath
TOPOLOGY_PATH_SINGLE_SWITCH: TopologyPath
TOPOLOGY_PATH_MULTIPLE_SWITCHES: TopologyPath
TOPOLOGY_PATH_HOST_BRIDGE: TopologyPath
TOPOLOGY_PATH_NUMA_NODE: TopologyPath
TOPOLOGY_PATH_SYSTEM: TopologyPath

class TopologyPeer(_message.Message):
    __slots__ = ("uid", "path", "links")
    UID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    uid: str
    path: TopologyPath
    links: int
    def __init__(self, uid: _Optional[str] = ..., path: _Optional[_Union[TopologyPath, str]] = ..., links: _Optional[int] = ...) -> None: ...

class PartitionInfo(_message.Message):
    __slots__ = ("profile", "gpu_instance_id", "compute_instance_id", "gpu_slices", "compute_slices", "multiprocessors", "vm_id")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    GPU_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    GPU_SLICES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_SLICES_FIELD_NUMBER: _ClassVar[int]
    MULTIPROCESSORS_FIELD_NUMBER: _ClassVar[int]
    VM_ID_FIELD_NUMBER: _ClassVar[int]
    profile: str
    gpu_instance_id: int
    compute_instance_id: int
    gpu_slices: int
    compute_slices: int
    multiprocessors: int
    vm_id: str
    def __init__(self, profile: _Optional[str] = ..., gpu_instance_id: _Optional[int] = ..., compute_instance_id: _Optional[int] = ..., gpu_slices: _Optional[int] = ..., compute_slices: _Optional[int] = ..., multiprocessors: _Optional[int] = ..., vm_id: _Optional[str] = ...) -> None: ...

class DeviceInfo(_message.Message):
    __slots__ = ("uid", "vendor", "model", "serial", "kind", "index", "bdf", "slot", "parent_uid", "driver_version", "firmware_version", "board_part", "power_limit_max_watts", "cluster", "node", "simulated", "memory_kind", "partition", "runtime_version", "architecture", "compute_capability", "minor_number", "numa_node", "cpu_affinity", "peers", "virtualization", "fabric_cluster_uuid", "fabric_clique_id", "chassis_serial", "tray_index", "library_version")
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
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_VERSION_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    MINOR_NUMBER_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
    CPU_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    VIRTUALIZATION_FIELD_NUMBER: _ClassVar[int]
    FABRIC_CLUSTER_UUID_FIELD_NUMBER: _ClassVar[int]
    FABRIC_CLIQUE_ID_FIELD_NUMBER: _ClassVar[int]
    CHASSIS_SERIAL_FIELD_NUMBER: _ClassVar[int]
    TRAY_INDEX_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_VERSION_FIELD_NUMBER: _ClassVar[int]
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
    memory_kind: str
    partition: PartitionInfo
    runtime_version: str
    architecture: str
    compute_capability: str
    minor_number: int
    numa_node: int
    cpu_affinity: str
    peers: _containers.RepeatedCompositeFieldContainer[TopologyPeer]
    virtualization: str
    fabric_cluster_uuid: str
    fabric_clique_id: int
    chassis_serial: str
    tray_index: int
    library_version: str
    def __init__(self, uid: _Optional[str] = ..., vendor: _Optional[str] = ..., model: _Optional[str] = ..., serial: _Optional[str] = ..., kind: _Optional[_Union[DeviceKind, str]] = ..., index: _Optional[int] = ..., bdf: _Optional[str] = ..., slot: _Optional[str] = ..., parent_uid: _Optional[str] = ..., driver_version: _Optional[str] = ..., firmware_version: _Optional[str] = ..., board_part: _Optional[str] = ..., power_limit_max_watts: _Optional[float] = ..., cluster: _Optional[str] = ..., node: _Optional[str] = ..., simulated: _Optional[bool] = ..., memory_kind: _Optional[str] = ..., partition: _Optional[_Union[PartitionInfo, _Mapping]] = ..., runtime_version: _Optional[str] = ..., architecture: _Optional[str] = ..., compute_capability: _Optional[str] = ..., minor_number: _Optional[int] = ..., numa_node: _Optional[int] = ..., cpu_affinity: _Optional[str] = ..., peers: _Optional[_Iterable[_Union[TopologyPeer, _Mapping]]] = ..., virtualization: _Optional[str] = ..., fabric_cluster_uuid: _Optional[str] = ..., fabric_clique_id: _Optional[int] = ..., chassis_serial: _Optional[str] = ..., tray_index: _Optional[int] = ..., library_version: _Optional[str] = ...) -> None: ...

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
