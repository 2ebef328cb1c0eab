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

class FabricState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FABRIC_STATE_NOT_SUPPORTED: _ClassVar[FabricState]
    FABRIC_STATE_NOT_STARTED: _ClassVar[FabricState]
    FABRIC_STATE_IN_PROGRESS: _ClassVar[FabricState]
    FABRIC_STATE_COMPLETED: _ClassVar[FabricState]
    FABRIC_STATE_FAILED: _ClassVar[FabricState]

class FabricTrouble(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FABRIC_TROUBLE_DEGRADED_BANDWIDTH: _ClassVar[FabricTrouble]
    FABRIC_TROUBLE_ROUTE_RECOVERY: _ClassVar[FabricTrouble]
    FABRIC_TROUBLE_ROUTE_UNHEALTHY: _ClassVar[FabricTrouble]
    FABRIC_TROUBLE_ACCESS_TIMEOUT_RECOVERY: _ClassVar[FabricTrouble]
    FABRIC_TROUBLE_INCORRECT_CONFIGURATION: _ClassVar[FabricTrouble]

class RecoveryAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECOVERY_ACTION_NONE: _ClassVar[RecoveryAction]
    RECOVERY_ACTION_RESET_DEVICE: _ClassVar[RecoveryAction]
    RECOVERY_ACTION_REBOOT_NODE: _ClassVar[RecoveryAction]
    RECOVERY_ACTION_DRAIN_P2P: _ClassVar[RecoveryAction]
    RECOVERY_ACTION_DRAIN_AND_RESET: _ClassVar[RecoveryAction]
    RECOVERY_ACTION_RECOVER_FABRIC_DOMAIN: _ClassVar[RecoveryAction]
    RECOVERY_ACTION_RESET_BUS: _ClassVar[RecoveryAction]
    RECOVERY_ACTION_REBOOT_SYSTEM: _ClassVar[RecoveryAction]

class ComputeMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPUTE_MODE_SHARED: _ClassVar[ComputeMode]
    COMPUTE_MODE_EXCLUSIVE_THREAD: _ClassVar[ComputeMode]
    COMPUTE_MODE_PROHIBITED: _ClassVar[ComputeMode]
    COMPUTE_MODE_EXCLUSIVE_PROCESS: _ClassVar[ComputeMode]

class ProcessUse(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROCESS_USE_COMPUTE: _ClassVar[ProcessUse]
    PROCESS_USE_GRAPHICS: _ClassVar[ProcessUse]
    PROCESS_USE_MPS: _ClassVar[ProcessUse]
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
FABRIC_STATE_NOT_SUPPORTED: FabricState
FABRIC_STATE_NOT_STARTED: FabricState
FABRIC_STATE_IN_PROGRESS: FabricState
FABRIC_STATE_COMPLETED: FabricState
FABRIC_STATE_FAILED: FabricState
FABRIC_TROUBLE_DEGRADED_BANDWIDTH: FabricTrouble
FABRIC_TROUBLE_ROUTE_RECOVERY: FabricTrouble
FABRIC_TROUBLE_ROUTE_UNHEALTHY: FabricTrouble
FABRIC_TROUBLE_ACCESS_TIMEOUT_RECOVERY: FabricTrouble
FABRIC_TROUBLE_INCORRECT_CONFIGURATION: FabricTrouble
RECOVERY_ACTION_NONE: RecoveryAction
RECOVERY_ACTION_RESET_DEVICE: RecoveryAction
RECOVERY_ACTION_REBOOT_NODE: RecoveryAction
RECOVERY_ACTION_DRAIN_P2P: RecoveryAction
RECOVERY_ACTION_DRAIN_AND_RESET: RecoveryAction
RECOVERY_ACTION_RECOVER_FABRIC_DOMAIN: RecoveryAction
RECOVERY_ACTION_RESET_BUS: RecoveryAction
RECOVERY_ACTION_REBOOT_SYSTEM: RecoveryAction
COMPUTE_MODE_SHARED: ComputeMode
COMPUTE_MODE_EXCLUSIVE_THREAD: ComputeMode
COMPUTE_MODE_PROHIBITED: ComputeMode
COMPUTE_MODE_EXCLUSIVE_PROCESS: ComputeMode
PROCESS_USE_COMPUTE: ProcessUse
PROCESS_USE_GRAPHICS: ProcessUse
PROCESS_USE_MPS: ProcessUse

class Absence(_message.Message):
    __slots__ = ("reason", "field_number")
    REASON_FIELD_NUMBER: _ClassVar[int]
    FIELD_NUMBER_FIELD_NUMBER: _ClassVar[int]
    reason: AbsenceReason
    field_number: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, reason: _Optional[_Union[AbsenceReason, str]] = ..., field_number: _Optional[_Iterable[int]] = ...) -> None: ...

class DeviceSample(_message.Message):
    __slots__ = ("uid", "index", "full", "utilization_ratio", "memory_used_bytes", "power_watts", "temperature_celsius", "sm_clock_hertz", "memory_clock_hertz", "energy_joules", "pcie_tx_bytes", "pcie_rx_bytes", "interconnect_tx_bytes", "interconnect_rx_bytes", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio", "memory_temperature_celsius", "throttle_reasons", "throttled_thermal_seconds", "throttled_power_seconds", "fan_ratio", "performance_state", "memory_total_bytes", "memory_reserved_bytes", "power_limit_watts", "sm_clock_max_hertz", "memory_clock_max_hertz", "pcie_link_generation", "pcie_link_generation_max", "pcie_link_width", "pcie_link_width_max", "pcie_replays", "ecc_corrected_volatile_errors", "ecc_uncorrected_volatile_errors", "ecc_corrected_aggregate_errors", "ecc_uncorrected_aggregate_errors", "remapped_rows_correctable", "remapped_rows_uncorrectable", "remapped_rows_pending", "remapped_rows_failed", "interconnect_errors", "interconnect_links_active", "temperature_slowdown_celsius", "temperature_shutdown_celsius", "memory_busy_ratio", "encoder_utilization_ratio", "decoder_utilization_ratio", "graphics_active_ratio", "sm_occupancy_ratio", "fp64_active_ratio", "fp32_active_ratio", "fp16_active_ratio", "temperature_margin_celsius", "power_average_watts", "graphics_clock_hertz", "video_clock_hertz", "graphics_clock_max_hertz", "video_clock_max_hertz", "throttled_hardware_thermal_seconds", "throttled_power_brake_seconds", "throttled_sync_boost_seconds", "throttled_board_limit_seconds", "throttled_low_utilization_seconds", "throttled_reliability_seconds", "pcie_tx_bytes_per_second", "pcie_rx_bytes_per_second", "ecc_enabled", "ecc_corrected_dram_volatile_errors", "ecc_uncorrected_dram_volatile_errors", "ecc_corrected_sram_volatile_errors", "ecc_uncorrected_sram_volatile_errors", "ecc_corrected_dram_aggregate_errors", "ecc_uncorrected_dram_aggregate_errors", "ecc_corrected_sram_aggregate_errors", "ecc_uncorrected_sram_aggregate_errors", "ecc_sram_threshold_exceeded", "remapped_row_banks_low", "remapped_row_banks_exhausted", "retired_pages_single_bit", "retired_pages_double_bit", "retired_pages_pending", "interconnect_replay_errors", "interconnect_recovery_errors", "interconnect_crc_errors", "fabric_state", "fabric_unhealthy", "recovery_action", "persistence_mode", "partitioning_enabled", "partitioning_pending", "compute_mode", "bar1_total_bytes", "bar1_used_bytes", "power_limit_min_watts", "power_limit_default_watts", "temperature_memory_max_celsius", "temperature_operating_max_celsius", "license_valid", "accounting_enabled", "absences", "info", "vendor_metrics", "links")
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
    MEMORY_BUSY_RATIO_FIELD_NUMBER: _ClassVar[int]
    ENCODER_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    DECODER_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    GRAPHICS_ACTIVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    SM_OCCUPANCY_RATIO_FIELD_NUMBER: _ClassVar[int]
    FP64_ACTIVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    FP32_ACTIVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    FP16_ACTIVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_MARGIN_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    POWER_AVERAGE_WATTS_FIELD_NUMBER: _ClassVar[int]
    GRAPHICS_CLOCK_HERTZ_FIELD_NUMBER: _ClassVar[int]
    VIDEO_CLOCK_HERTZ_FIELD_NUMBER: _ClassVar[int]
    GRAPHICS_CLOCK_MAX_HERTZ_FIELD_NUMBER: _ClassVar[int]
    VIDEO_CLOCK_MAX_HERTZ_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_HARDWARE_THERMAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_POWER_BRAKE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_SYNC_BOOST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_BOARD_LIMIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_LOW_UTILIZATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_RELIABILITY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PCIE_TX_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    PCIE_RX_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    ECC_ENABLED_FIELD_NUMBER: _ClassVar[int]
    ECC_CORRECTED_DRAM_VOLATILE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_UNCORRECTED_DRAM_VOLATILE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_CORRECTED_SRAM_VOLATILE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_UNCORRECTED_SRAM_VOLATILE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_CORRECTED_DRAM_AGGREGATE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_UNCORRECTED_DRAM_AGGREGATE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_CORRECTED_SRAM_AGGREGATE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_UNCORRECTED_SRAM_AGGREGATE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ECC_SRAM_THRESHOLD_EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    REMAPPED_ROW_BANKS_LOW_FIELD_NUMBER: _ClassVar[int]
    REMAPPED_ROW_BANKS_EXHAUSTED_FIELD_NUMBER: _ClassVar[int]
    RETIRED_PAGES_SINGLE_BIT_FIELD_NUMBER: _ClassVar[int]
    RETIRED_PAGES_DOUBLE_BIT_FIELD_NUMBER: _ClassVar[int]
    RETIRED_PAGES_PENDING_FIELD_NUMBER: _ClassVar[int]
    INTERCONNECT_REPLAY_ERRORS_FIELD_NUMBER: _ClassVar[int]
    INTERCONNECT_RECOVERY_ERRORS_FIELD_NUMBER: _ClassVar[int]
    INTERCONNECT_CRC_ERRORS_FIELD_NUMBER: _ClassVar[int]
    FABRIC_STATE_FIELD_NUMBER: _ClassVar[int]
    FABRIC_UNHEALTHY_FIELD_NUMBER: _ClassVar[int]
    RECOVERY_ACTION_FIELD_NUMBER: _ClassVar[int]
    PERSISTENCE_MODE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONING_ENABLED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONING_PENDING_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_MODE_FIELD_NUMBER: _ClassVar[int]
    BAR1_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    BAR1_USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    POWER_LIMIT_MIN_WATTS_FIELD_NUMBER: _ClassVar[int]
    POWER_LIMIT_DEFAULT_WATTS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_MEMORY_MAX_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_OPERATING_MAX_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    LICENSE_VALID_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTING_ENABLED_FIELD_NUMBER: _ClassVar[int]
    ABSENCES_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    VENDOR_METRICS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
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
    memory_busy_ratio: float
    encoder_utilization_ratio: float
    decoder_utilization_ratio: float
    graphics_active_ratio: float
    sm_occupancy_ratio: float
    fp64_active_ratio: float
    fp32_active_ratio: float
    fp16_active_ratio: float
    temperature_margin_celsius: float
    power_average_watts: float
    graphics_clock_hertz: float
    video_clock_hertz: float
    graphics_clock_max_hertz: float
    video_clock_max_hertz: float
    throttled_hardware_thermal_seconds: float
    throttled_power_brake_seconds: float
    throttled_sync_boost_seconds: float
    throttled_board_limit_seconds: float
    throttled_low_utilization_seconds: float
    throttled_reliability_seconds: float
    pcie_tx_bytes_per_second: float
    pcie_rx_bytes_per_second: float
    ecc_enabled: bool
    ecc_corrected_dram_volatile_errors: int
    ecc_uncorrected_dram_volatile_errors: int
    ecc_corrected_sram_volatile_errors: int
    ecc_uncorrected_sram_volatile_errors: int
    ecc_corrected_dram_aggregate_errors: int
    ecc_uncorrected_dram_aggregate_errors: int
    ecc_corrected_sram_aggregate_errors: int
    ecc_uncorrected_sram_aggregate_errors: int
    ecc_sram_threshold_exceeded: bool
    remapped_row_banks_low: int
    remapped_row_banks_exhausted: int
    retired_pages_single_bit: int
    retired_pages_double_bit: int
    retired_pages_pending: bool
    interconnect_replay_errors: int
    interconnect_recovery_errors: int
    interconnect_crc_errors: int
    fabric_state: int
    fabric_unhealthy: int
    recovery_action: int
    persistence_mode: bool
    partitioning_enabled: bool
    partitioning_pending: bool
    compute_mode: int
    bar1_total_bytes: int
    bar1_used_bytes: int
    power_limit_min_watts: float
    power_limit_default_watts: float
    temperature_memory_max_celsius: float
    temperature_operating_max_celsius: float
    license_valid: bool
    accounting_enabled: bool
    absences: _containers.RepeatedCompositeFieldContainer[Absence]
    info: _inventory_pb2.DeviceInfo
    vendor_metrics: _containers.ScalarMap[str, float]
    links: _containers.RepeatedCompositeFieldContainer[InterconnectLink]
    def __init__(self, uid: _Optional[str] = ..., index: _Optional[int] = ..., full: _Optional[bool] = ..., utilization_ratio: _Optional[float] = ..., memory_used_bytes: _Optional[int] = ..., power_watts: _Optional[float] = ..., temperature_celsius: _Optional[float] = ..., sm_clock_hertz: _Optional[float] = ..., memory_clock_hertz: _Optional[float] = ..., energy_joules: _Optional[float] = ..., pcie_tx_bytes: _Optional[int] = ..., pcie_rx_bytes: _Optional[int] = ..., interconnect_tx_bytes: _Optional[int] = ..., interconnect_rx_bytes: _Optional[int] = ..., sm_active_ratio: _Optional[float] = ..., tensor_active_ratio: _Optional[float] = ..., dram_active_ratio: _Optional[float] = ..., memory_temperature_celsius: _Optional[float] = ..., throttle_reasons: _Optional[int] = ..., throttled_thermal_seconds: _Optional[float] = ..., throttled_power_seconds: _Optional[float] = ..., fan_ratio: _Optional[float] = ..., performance_state: _Optional[int] = ..., memory_total_bytes: _Optional[int] = ..., memory_reserved_bytes: _Optional[int] = ..., power_limit_watts: _Optional[float] = ..., sm_clock_max_hertz: _Optional[float] = ..., memory_clock_max_hertz: _Optional[float] = ..., pcie_link_generation: _Optional[int] = ..., pcie_link_generation_max: _Optional[int] = ..., pcie_link_width: _Optional[int] = ..., pcie_link_width_max: _Optional[int] = ..., pcie_replays: _Optional[int] = ..., ecc_corrected_volatile_errors: _Optional[int] = ..., ecc_uncorrected_volatile_errors: _Optional[int] = ..., ecc_corrected_aggregate_errors: _Optional[int] = ..., ecc_uncorrected_aggregate_errors: _Optional[int] = ..., remapped_rows_correctable: _Optional[int] = ..., remapped_rows_uncorrectable: _Optional[int] = ..., remapped_rows_pending: _Optional[bool] = ..., remapped_rows_failed: _Optional[bool] = ..., interconnect_errors: _Optional[int] = ..., interconnect_links_active: _Optional[int] = ..., temperature_slowdown_celsius: _Optional[float] = ..., temperature_shutdown_celsius: _Optional[float] = ..., memory_busy_ratio: _Optional[float] = ..., encoder_utilization_ratio: _Optional[float] = ..., decoder_utilization_ratio: _Optional[float] = ..., graphics_active_ratio: _Optional[float] = ..., sm_occupancy_ratio: _Optional[float] = ..., fp64_active_ratio: _Optional[float] = ..., fp32_active_ratio: _Optional[float] = ..., fp16_active_ratio: _Optional[float] = ..., temperature_margin_celsius: _Optional[float] = ..., power_average_watts: _Optional[float] = ..., graphics_clock_hertz: _Optional[float] = ..., video_clock_hertz: _Optional[float] = ..., graphics_clock_max_hertz: _Optional[float] = ..., video_clock_max_hertz: _Optional[float] = ..., throttled_hardware_thermal_seconds: _Optional[float] = ..., throttled_power_brake_seconds: _Optional[float] = ..., throttled_sync_boost_seconds: _Optional[float] = ..., throttled_board_limit_seconds: _Optional[float] = ..., throttled_low_utilization_seconds: _Optional[float] = ..., throttled_reliability_seconds: _Optional[float] = ..., pcie_tx_bytes_per_second: _Optional[float] = ..., pcie_rx_bytes_per_second: _Optional[float] = ..., ecc_enabled: _Optional[bool] = ..., ecc_corrected_dram_volatile_errors: _Optional[int] = ..., ecc_uncorrected_dram_volatile_errors: _Optional[int] = ..., ecc_corrected_sram_volatile_errors: _Optional[int] = ..., ecc_uncorrected_sram_volatile_errors: _Optional[int] = ..., ecc_corrected_dram_aggregate_errors: _Optional[int] = ..., ecc_uncorrected_dram_aggregate_errors: _Optional[int] = ..., ecc_corrected_sram_aggregate_errors: _Optional[int] = ..., ecc_uncorrected_sram_aggregate_errors: _Optional[int] = ..., ecc_sram_threshold_exceeded: _Optional[bool] = ..., remapped_row_banks_low: _Optional[int] = ..., remapped_row_banks_exhausted: _Optional[int] = ..., retired_pages_single_bit: _Optional[int] = ..., retired_pages_double_bit: _Optional[int] = ..., retired_pages_pending: _Optional[bool] = ..., interconnect_replay_errors: _Optional[int] = ..., interconnect_recovery_errors: _Optional[int] = ..., interconnect_crc_errors: _Optional[int] = ..., fabric_state: _Optional[int] = ..., fabric_unhealthy: _Optional[int] = ..., recovery_action: _Optional[int] = ..., persistence_mode: _Optional[bool] = ..., partitioning_enabled: _Optional[bool] = ..., partitioning_pending: _Optional[bool] = ..., compute_mode: _Optional[int] = ..., bar1_total_bytes: _Optional[int] = ..., bar1_used_bytes: _Optional[int] = ..., power_limit_min_watts: _Optional[float] = ..., power_limit_default_watts: _Optional[float] = ..., temperature_memory_max_celsius: _Optional[float] = ..., temperature_operating_max_celsius: _Optional[float] = ..., license_valid: _Optional[bool] = ..., accounting_enabled: _Optional[bool] = ..., absences: _Optional[_Iterable[_Union[Absence, _Mapping]]] = ..., info: _Optional[_Union[_inventory_pb2.DeviceInfo, _Mapping]] = ..., vendor_metrics: _Optional[_Mapping[str, float]] = ..., links: _Optional[_Iterable[_Union[InterconnectLink, _Mapping]]] = ...) -> None: ...

class InterconnectLink(_message.Message):
    __slots__ = ("index", "active", "tx_bytes", "rx_bytes", "replay_errors", "recovery_errors", "crc_errors", "remote_bdf", "remote_kind", "version", "speed_bytes_per_second", "receive_errors", "effective_errors", "symbol_errors", "failed_recoveries")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    TX_BYTES_FIELD_NUMBER: _ClassVar[int]
    RX_BYTES_FIELD_NUMBER: _ClassVar[int]
    REPLAY_ERRORS_FIELD_NUMBER: _ClassVar[int]
    RECOVERY_ERRORS_FIELD_NUMBER: _ClassVar[int]
    CRC_ERRORS_FIELD_NUMBER: _ClassVar[int]
    REMOTE_BDF_FIELD_NUMBER: _ClassVar[int]
    REMOTE_KIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SPEED_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    RECEIVE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_ERRORS_FIELD_NUMBER: _ClassVar[int]
    FAILED_RECOVERIES_FIELD_NUMBER: _ClassVar[int]
    index: int
    active: bool
    tx_bytes: int
    rx_bytes: int
    replay_errors: int
    recovery_errors: int
    crc_errors: int
    remote_bdf: str
    remote_kind: _inventory_pb2.DeviceKind
    version: int
    speed_bytes_per_second: float
    receive_errors: int
    effective_errors: int
    symbol_errors: int
    failed_recoveries: int
    def __init__(self, index: _Optional[int] = ..., active: _Optional[bool] = ..., tx_bytes: _Optional[int] = ..., rx_bytes: _Optional[int] = ..., replay_errors: _Optional[int] = ..., recovery_errors: _Optional[int] = ..., crc_errors: _Optional[int] = ..., remote_bdf: _Optional[str] = ..., remote_kind: _Optional[_Union[_inventory_pb2.DeviceKind, str]] = ..., version: _Optional[int] = ..., speed_bytes_per_second: _Optional[float] = ..., receive_errors: _Optional[int] = ..., effective_errors: _Optional[int] = ..., symbol_errors: _Optional[int] = ..., failed_recoveries: _Optional[int] = ...) -> None: ...

class ProcessSample(_message.Message):
    __slots__ = ("device_uid", "pid", "started_at_ns", "namespace_pids", "uses", "memory_used_bytes", "sm_utilization_ratio", "memory_utilization_ratio", "encoder_utilization_ratio", "decoder_utilization_ratio", "name", "command_line", "user_id", "cgroup", "gpu_instance_id", "compute_instance_id", "absences")
    DEVICE_UID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_PIDS_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SM_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    MEMORY_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    ENCODER_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    DECODER_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMAND_LINE_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    CGROUP_FIELD_NUMBER: _ClassVar[int]
    GPU_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    ABSENCES_FIELD_NUMBER: _ClassVar[int]
    device_uid: str
    pid: int
    started_at_ns: int
    namespace_pids: _containers.RepeatedScalarFieldContainer[int]
    uses: int
    memory_used_bytes: int
    sm_utilization_ratio: float
    memory_utilization_ratio: float
    encoder_utilization_ratio: float
    decoder_utilization_ratio: float
    name: str
    command_line: str
    user_id: int
    cgroup: str
    gpu_instance_id: int
    compute_instance_id: int
    absences: _containers.RepeatedCompositeFieldContainer[Absence]
    def __init__(self, device_uid: _Optional[str] = ..., pid: _Optional[int] = ..., started_at_ns: _Optional[int] = ..., namespace_pids: _Optional[_Iterable[int]] = ..., uses: _Optional[int] = ..., memory_used_bytes: _Optional[int] = ..., sm_utilization_ratio: _Optional[float] = ..., memory_utilization_ratio: _Optional[float] = ..., encoder_utilization_ratio: _Optional[float] = ..., decoder_utilization_ratio: _Optional[float] = ..., name: _Optional[str] = ..., command_line: _Optional[str] = ..., user_id: _Optional[int] = ..., cgroup: _Optional[str] = ..., gpu_instance_id: _Optional[int] = ..., compute_instance_id: _Optional[int] = ..., absences: _Optional[_Iterable[_Union[Absence, _Mapping]]] = ...) -> None: ...

class SampleBatch(_message.Message):
    __slots__ = ("cluster", "node", "source", "agent_epoch", "sequence", "taken_at_ns", "sent_at_ns", "boot_id", "devices", "driver_epoch", "interval_ns", "simulated", "driver_version", "replayed", "processes", "processes_taken", "processes_unknown")
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
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_TAKEN_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
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
    replayed: bool
    processes: _containers.RepeatedCompositeFieldContainer[ProcessSample]
    processes_taken: bool
    processes_unknown: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., source: _Optional[str] = ..., agent_epoch: _Optional[int] = ..., sequence: _Optional[int] = ..., taken_at_ns: _Optional[int] = ..., sent_at_ns: _Optional[int] = ..., boot_id: _Optional[str] = ..., devices: _Optional[_Iterable[_Union[DeviceSample, _Mapping]]] = ..., driver_epoch: _Optional[int] = ..., interval_ns: _Optional[int] = ..., simulated: _Optional[bool] = ..., driver_version: _Optional[str] = ..., replayed: _Optional[bool] = ..., processes: _Optional[_Iterable[_Union[ProcessSample, _Mapping]]] = ..., processes_taken: _Optional[bool] = ..., processes_unknown: _Optional[_Iterable[str]] = ...) -> None: ...
