"""The generated messages under one name: `from schemas.telemetry import v1`."""

from schemas.telemetry.v1.allocation_pb2 import (
    Allocation,
    AllocationChange,
    AllocationChangeKind,
    AllocationSnapshot,
    Attributed,
    AttributedBatch,
    OwnerState,
    Workload,
)
from schemas.telemetry.v1.event_pb2 import (
    ContextEvent,
    ContextEventKind,
    DeviceEvent,
    DeviceEventKind,
    Severity,
)
from schemas.telemetry.v1.finding_pb2 import (
    Alert,
    AlertMode,
    AlertState,
    AlertStatus,
    AlertVerdict,
    Finding,
    FindingKind,
    Forecast,
    ResolveReason,
)
from schemas.telemetry.v1.inference_pb2 import Histogram, InferenceWindow
from schemas.telemetry.v1.inventory_pb2 import DeviceInfo, DeviceKind, InventoryRecord, NodeInfo
from schemas.telemetry.v1.options_pb2 import Cadence, MetricKind, MetricOptions, metric
from schemas.telemetry.v1.sample_pb2 import Absence, AbsenceReason, DeviceSample, SampleBatch, ThrottleReason

__all__ = [
    "Absence",
    "AbsenceReason",
    "Alert",
    "AlertMode",
    "AlertState",
    "AlertStatus",
    "AlertVerdict",
    "Allocation",
    "AllocationChange",
    "AllocationChangeKind",
    "AllocationSnapshot",
    "Attributed",
    "AttributedBatch",
    "Cadence",
    "ContextEvent",
    "ContextEventKind",
    "DeviceEvent",
    "DeviceEventKind",
    "DeviceInfo",
    "DeviceKind",
    "DeviceSample",
    "Finding",
    "FindingKind",
    "Forecast",
    "Histogram",
    "InferenceWindow",
    "InventoryRecord",
    "MetricKind",
    "MetricOptions",
    "NodeInfo",
    "OwnerState",
    "ResolveReason",
    "SampleBatch",
    "Severity",
    "ThrottleReason",
    "Workload",
    "metric",
]
