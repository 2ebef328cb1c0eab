from schemas.telemetry.v1 import inventory_pb2 as _inventory_pb2
from schemas.telemetry.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AbsenceReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ABSENCE_REASON_UNSPECIFIED: _ClassVar[AbsenceReason]
    ABSENCE_REASON_NOT_SUPPORTED: _ClassVar[AbsenceReason]
    ABSENCE_REASON_NO_PERMISSION: _ClassVar[AbsenceReason]
    ABSENCE_REASON_LOST: _ClassVar[AbsenceReason]
    ABSENCE_REASON_STALE: _ClassVar[AbsenceReason]
    ABSENCE_REASON_ERROR: _ClassVar[AbsenceReason]
    ABSENCE_REASON_OUT_OF_RANGE: _ClassVar[AbsenceReason]

class ThrottleReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    THROTTLE_REASON_IDLE: _ClassVar[ThrottleReason]
    THROTTLE_REASON_APPLICATION_CLOCKS: _ClassVar[ThrottleReason]
    THROTTLE_REASON_SOFTWARE_POWER_CAP: _ClassVar[ThrottleReason]
    THROTTLE_REASON_HARDWARE_SLOWDOWN: _ClassVar[ThrottleReason]
    THROTTLE_REASON_SYNC_BOOST: _ClassVar[ThrottleReason]
    THROTTLE_REASON_SOFTWARE_THERMAL: _ClassVar[ThrottleReason]
    THROTTLE_REASON_HARDWARE_THERMAL: _ClassVar[ThrottleReason]
    THROTTLE_REASON_HARDWARE_POWER_BRAKE: _ClassVar[ThrottleReason]
    THROTTLE_REASON_DISPLAY_CLOCKS: _ClassVar[ThrottleReason]
ABSENCE_REASON_UNSPECIFIED: AbsenceReason
ABSENCE_REASON_NOT_SUPPORTED: AbsenceReason
ABSENCE_REASON_NO_PERMISSION: AbsenceReason
ABSENCE_REASON_LOST: AbsenceReason
ABSENCE_REASON_STALE: AbsenceReason
ABSENCE_REASON_ERROR: AbsenceReason
ABSENCE_REASON_OUT_OF_RANGE: AbsenceReason
THROTTLE_REASON_IDLE: ThrottleReason
THROTTLE_REASON_APPLICATION_CLOCKS: ThrottleReason
THROTTLE_REASON_SOFTWARE_POWER_CAP: ThrottleReason
THROTTLE_REASON_HARDWARE_SLOWDOWN: ThrottleReason
THROTTLE_REASON_SYNC_BOOST: ThrottleReason
THROTTLE_REASON_SOFTWARE_THERMAL: ThrottleReason
THROTTLE_REASON_HARDWARE_THERMAL: ThrottleReason
THROTTLE_REASON_HARDWARE_POWER_BRAKE: ThrottleReason
THROTTLE_REASON_DISPLAY_CLOCKS: ThrottleReason

class Absence(_message.Message):
    __slots__ = ("reason", "field_number")
    REASON_FIELD_NUMBER: _ClassVar[int]
    FIELD_NUMBER_FIELD_NUMBER: _ClassVar[int]
    reason: AbsenceReason
    field_number: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, reason: _Optional[_Union[AbsenceReason, str]] = ..., field_number: _Optional[_Iterable[int]] = ...) -> None: ...

class DeviceSample(_message.Message):
    __slots__ = ("uid", "index", "full", "utilization_ratio", "memory_used_bytes", "power_watts", "temperature_celsius", "sm_clock_hertz", "memory_clock_hertz", "energy_joules", "pcie_tx_bytes", "pcie_rx_bytes", "interconnect_tx_bytes", "interconnect_rx_bytes", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio", "memory_temperature_celsius", "throttle_reasons", "throttled_thermal_seconds", "throttled_power_seconds", "fan_ratio", "performance_state", "memory_total_bytes", "memory_reserved_bytes", "power_limit_watts", "sm_clock_max_hertz", "memory_clock_max_hertz", "pcie_link_generation", "pcie_link_generation_max", "pcie_link_width", "pcie_link_width_max", "pcie_replays", "ecc_corrected_volatile_errors", "ecc_uncorrected_volatile_errors", "ecc_corrected_aggregate_errors", "ecc_uncorrected_aggregate_errors", "remapped_rows_correctable", "remapped_rows_uncorrectable", "remapped_rows_pending", "remapped_rows_failed", "interconnect_errors", "interconnect_links_active", "temperature_slowdown_celsius", "temperature_shutdown_celsius", "absences", "info", "vendor_metrics")
    class VendorMetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    UID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    POWER_WATTS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    SM_CLOCK_HERTZ_FIELD_NUMBER: _ClassVar[int]
    MEMORY_CLOCK_HERTZ_FIELD_NUMBER: _ClassVar[int]
    ENERGY_JOULES_FIELD_NUMBER: _ClassVar[int]
    PCIE_TX_BYTES_FIELD_NUMBER: _ClassVar[int]
    PCIE_RX_BYTES_FIELD_NUMBER: _ClassVar[int]
    INTERCONNECT_TX_BYTES_FIELD_NUMBER: _ClassVar[int]
    INTERCONNECT_RX_BYTES_FIELD_NUMBER: _ClassVar[int]
    SM_ACTIVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    TENSOR_ACTIVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    DRAM_ACTIVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    MEMORY_TEMPERATURE_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_REASONS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_THERMAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_POWER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FAN_RATIO_FIELD_NUMBER: _ClassVar[int]
    PERFORMANCE_STATE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_RESERVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    POWER_LIMIT_WATTS_FIELD_NUMBER: _ClassVar[int]
    SM_CLOCK_MAX_HERTZ_FIELD_NUMBER: _ClassVar[int]
    MEMORY_CLOCK_MAX_HERTZ_FIELD_NUMBER: _ClassVar[int]
    PCIE_LINK_GENERATION_FIELD_NUMBER: _ClassVar[int]
    PCIE_LINK_GENERATION_MAX_FIELD_NUMBER: _ClassVar[int]
    PCIE_LINK_WIDTH_FIELD_NUMBER: _ClassVar[int]
    PCIE_LINK_WIDTH_MAX_FIELD_NUMBER: _ClassVar[int]
    PCIE_REPLAYS_FIELD_NUMBER: _ClassVar[int]
    ECC_CORRECTED_VOLATILE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_UNCORRECTED_VOLATILE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_CORRECTED_AGGREGATE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_UNCORRECTED_AGGREGATE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    REMAPPED_ROWS_CORRECTABLE_FIELD_NUMBER: _ClassVar[int]
    REMAPPED_ROWS_UNCORRECTABLE_FIELD_NUMBER: _ClassVar[int]
    REMAPPED_ROWS_PENDING_FIELD_NUMBER: _ClassVar[int]
    REMAPPED_ROWS_FAILED_FIELD_NUMBER: _ClassVar[int]
    INTERCONNECT_ERRORS_FIELD_NUMBER: _ClassVar[int]
    INTERCONNECT_LINKS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_SLOWDOWN_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_SHUTDOWN_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    ABSENCES_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    VENDOR_METRICS_FIELD_NUMBER: _ClassVar[int]
    uid: str
    index: int
    full: bool
    utilization_ratio: float
    memory_used_bytes: int
    power_watts: float
    temperature_celsius: float
    sm_clock_hertz: float
    memory_clock_hertz: float
    energy_joules: float
    pcie_tx_bytes: int
    pcie_rx_bytes: int
    interconnect_tx_bytes: int
    interconnect_rx_bytes: int
    sm_active_ratio: float
    tensor_active_ratio: float
    dram_active_ratio: float
    memory_temperature_celsius: float
    throttle_reasons: int
    throttled_thermal_seconds: float
    throttled_power_seconds: float
    fan_ratio: float
    performance_state: int
    memory_total_bytes: int
    memory_reserved_bytes: int
    power_limit_watts: float
    sm_clock_max_hertz: float
    memory_clock_max_hertz: float
    pcie_link_generation: int
    pcie_link_generation_max: int
    pcie_link_width: int
    pcie_link_width_max: int
    pcie_replays: int
    ecc_corrected_volatile_errors: int
    ecc_uncorrected_volatile_errors: int
    ecc_corrected_aggregate_errors: int
    ecc_uncorrected_aggregate_errors: int
    remapped_rows_correctable: int
    remapped_rows_uncorrectable: int
    remapped_rows_pending: bool
    remapped_rows_failed: bool
    interconnect_errors: int
    interconnect_links_active: int
    temperature_slowdown_celsius: float
    temperature_shutdown_celsius: float
    absences: _containers.RepeatedCompositeFieldContainer[Absence]
    info: _inventory_pb2.DeviceInfo
    vendor_metrics: _containers.ScalarMap[str, float]
    def __init__(self, uid: _Optional[str] = ..., index: _Optional[int] = ..., full: _Optional[bool] = ..., utilization_ratio: _Optional[float] = ..., memory_used_bytes: _Optional[int] = ..., power_watts: _Optional[float] = ..., temperature_celsius: _Optional[float] = ..., sm_clock_hertz: _Optional[float] = ..., memory_clock_hertz: _Optional[float] = ..., energy_joules: _Optional[float] = ..., pcie_tx_bytes: _Optional[int] = ..., pcie_rx_bytes: _Optional[int] = ..., interconnect_tx_bytes: _Optional[int] = ..., interconnect_rx_bytes: _Optional[int] = ..., sm_active_ratio: _Optional[float] = ..., tensor_active_ratio: _Optional[float] = ..., dram_active_ratio: _Optional[float] = ..., memory_temperature_celsius: _Optional[float] = ..., throttle_reasons: _Optional[int] = ..., throttled_thermal_seconds: _Optional[float] = ..., throttled_power_seconds: _Optional[float] = ..., fan_ratio: _Optional[float] = ..., performance_state: _Optional[int] = ..., memory_total_bytes: _Optional[int] = ..., memory_reserved_bytes: _Optional[int] = ..., power_limit_watts: _Optional[float] = ..., sm_clock_max_hertz: _Optional[float] = ..., memory_clock_max_hertz: _Optional[float] = ..., pcie_link_generation: _Optional[int] = ..., pcie_link_generation_max: _Optional[int] = ..., pcie_link_width: _Optional[int] = ..., pcie_link_width_max: _Optional[int] = ..., pcie_replays: _Optional[int] = ..., ecc_corrected_volatile_errors: _Optional[int] = ..., ecc_uncorrected_volatile_errors: _Optional[int] = ..., ecc_corrected_aggregate_errors: _Optional[int] = ..., ecc_uncorrected_aggregate_errors: _Optional[int] = ..., remapped_rows_correctable: _Optional[int] = ..., remapped_rows_uncorrectable: _Optional[int] = ..., remapped_rows_pending: _Optional[bool] = ..., remapped_rows_failed: _Optional[bool] = ..., interconnect_errors: _Optional[int] = ..., interconnect_links_active: _Optional[int] = ..., temperature_slowdown_celsius: _Optional[float] = ..., temperature_shutdown_celsius: _Optional[float] = ..., absences: _Optional[_Iterable[_Union[Absence, _Mapping]]] = ..., info: _Optional[_Union[_inventory_pb2.DeviceInfo, _Mapping]] = ..., vendor_metrics: _Optional[_Mapping[str, float]] = ...) -> None: ...

class SampleBatch(_message.Message):
    __slots__ = ("cluster", "node", "source", "agent_epoch", "sequence", "taken_at_ns", "sent_at_ns", "boot_id", "devices", "driver_epoch", "interval_ns", "simulated", "driver_version")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TAKEN_AT_NS_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_NS_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DRIVER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_NS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    DRIVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    source: str
    agent_epoch: int
    sequence: int
    taken_at_ns: int
    sent_at_ns: int
    boot_id: str
    devices: _containers.RepeatedCompositeFieldContainer[DeviceSample]
    driver_epoch: int
    interval_ns: int
    simulated: bool
    driver_version: str
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., source: _Optional[str] = ..., agent_epoch: _Optional[int] = ..., sequence: _Optional[int] = ..., taken_at_ns: _Optional[int] = ..., sent_at_ns: _Optional[int] = ..., boot_id: _Optional[str] = ..., devices: _Optional[_Iterable[_Union[DeviceSample, _Mapping]]] = ..., driver_epoch: _Optional[int] = ..., interval_ns: _Optional[int] = ..., simulated: _Optional[bool] = ..., driver_version: _Optional[str] = ...) -> None: ...
