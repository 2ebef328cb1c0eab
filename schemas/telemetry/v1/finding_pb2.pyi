from schemas.telemetry.v1 import allocation_pb2 as _allocation_pb2
from schemas.telemetry.v1 import event_pb2 as _event_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FindingKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINDING_KIND_UNSPECIFIED: _ClassVar[FindingKind]
    FINDING_KIND_THRESHOLD: _ClassVar[FindingKind]
    FINDING_KIND_ANOMALY: _ClassVar[FindingKind]
    FINDING_KIND_SILENCE: _ClassVar[FindingKind]
    FINDING_KIND_EVENT: _ClassVar[FindingKind]
    FINDING_KIND_FORECAST: _ClassVar[FindingKind]
    FINDING_KIND_BOTTLENECK: _ClassVar[FindingKind]

class AlertMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALERT_MODE_UNSPECIFIED: _ClassVar[AlertMode]
    ALERT_MODE_SHADOW: _ClassVar[AlertMode]
    ALERT_MODE_NOTIFY: _ClassVar[AlertMode]

class AlertStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALERT_STATUS_UNSPECIFIED: _ClassVar[AlertStatus]
    ALERT_STATUS_PENDING: _ClassVar[AlertStatus]
    ALERT_STATUS_FIRING: _ClassVar[AlertStatus]
    ALERT_STATUS_RESOLVED: _ClassVar[AlertStatus]

class AlertVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALERT_VERDICT_UNSPECIFIED: _ClassVar[AlertVerdict]
    ALERT_VERDICT_TRUE: _ClassVar[AlertVerdict]
    ALERT_VERDICT_NOISE: _ClassVar[AlertVerdict]
    ALERT_VERDICT_KNOWN: _ClassVar[AlertVerdict]

class ResolveReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESOLVE_REASON_UNSPECIFIED: _ClassVar[ResolveReason]
    RESOLVE_REASON_RECOVERED: _ClassVar[ResolveReason]
    RESOLVE_REASON_SIGNAL_LOST: _ClassVar[ResolveReason]
FINDING_KIND_UNSPECIFIED: FindingKind
FINDING_KIND_THRESHOLD: FindingKind
FINDING_KIND_ANOMALY: FindingKind
FINDING_KIND_SILENCE: FindingKind
FINDING_KIND_EVENT: FindingKind
FINDING_KIND_FORECAST: FindingKind
FINDING_KIND_BOTTLENECK: FindingKind
ALERT_MODE_UNSPECIFIED: AlertMode
ALERT_MODE_SHADOW: AlertMode
ALERT_MODE_NOTIFY: AlertMode
ALERT_STATUS_UNSPECIFIED: AlertStatus
ALERT_STATUS_PENDING: AlertStatus
ALERT_STATUS_FIRING: AlertStatus
ALERT_STATUS_RESOLVED: AlertStatus
ALERT_VERDICT_UNSPECIFIED: AlertVerdict
ALERT_VERDICT_TRUE: AlertVerdict
ALERT_VERDICT_NOISE: AlertVerdict
ALERT_VERDICT_KNOWN: AlertVerdict
RESOLVE_REASON_UNSPECIFIED: ResolveReason
RESOLVE_REASON_RECOVERED: ResolveReason
RESOLVE_REASON_SIGNAL_LOST: ResolveReason

class Finding(_message.Message):
    __slots__ = ("rule", "cluster", "node", "entity", "kind", "active", "severity", "observed_at_ns", "valid_until_ns", "since_ns", "value", "limit", "metric", "unit", "summary", "evidence", "owner", "hold_ns", "clear_ns", "simulated", "runbook", "mode", "score", "detector", "expected_low", "expected_high", "recent", "recent_step_ns", "explained_by")
    class EvidenceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RULE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    HOLD_NS_FIELD_NUMBER: _ClassVar[int]
    CLEAR_NS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    RUNBOOK_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    DETECTOR_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_LOW_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_HIGH_FIELD_NUMBER: _ClassVar[int]
    RECENT_FIELD_NUMBER: _ClassVar[int]
    RECENT_STEP_NS_FIELD_NUMBER: _ClassVar[int]
    EXPLAINED_BY_FIELD_NUMBER: _ClassVar[int]
    rule: str
    cluster: str
    node: str
    entity: str
    kind: FindingKind
    active: bool
    severity: _event_pb2.Severity
    observed_at_ns: int
    valid_until_ns: int
    since_ns: int
    value: float
    limit: float
    metric: str
    unit: str
    summary: str
    evidence: _containers.ScalarMap[str, str]
    owner: _allocation_pb2.Workload
    hold_ns: int
    clear_ns: int
    simulated: bool
    runbook: str
    mode: AlertMode
    score: float
    detector: str
    expected_low: float
    expected_high: float
    recent: _containers.RepeatedScalarFieldContainer[float]
    recent_step_ns: int
    explained_by: str
    def __init__(self, rule: _Optional[str] = ..., cluster: _Optional[str] = ..., node: _Optional[str] = ..., entity: _Optional[str] = ..., kind: _Optional[_Union[FindingKind, str]] = ..., active: _Optional[bool] = ..., severity: _Optional[_Union[_event_pb2.Severity, str]] = ..., observed_at_ns: _Optional[int] = ..., valid_until_ns: _Optional[int] = ..., since_ns: _Optional[int] = ..., value: _Optional[float] = ..., limit: _Optional[float] = ..., metric: _Optional[str] = ..., unit: _Optional[str] = ..., summary: _Optional[str] = ..., evidence: _Optional[_Mapping[str, str]] = ..., owner: _Optional[_Union[_allocation_pb2.Workload, _Mapping]] = ..., hold_ns: _Optional[int] = ..., clear_ns: _Optional[int] = ..., simulated: _Optional[bool] = ..., runbook: _Optional[str] = ..., mode: _Optional[_Union[AlertMode, str]] = ..., score: _Optional[float] = ..., detector: _Optional[str] = ..., expected_low: _Optional[float] = ..., expected_high: _Optional[float] = ..., recent: _Optional[_Iterable[float]] = ..., recent_step_ns: _Optional[int] = ..., explained_by: _Optional[str] = ...) -> None: ...

class Alert(_message.Message):
    __slots__ = ("fingerprint", "episode", "status", "rule", "cluster", "node", "entity", "kind", "severity", "started_at_ns", "fired_at_ns", "resolved_at_ns", "at_ns", "value", "limit", "metric", "unit", "summary", "evidence", "owner", "mode", "simulated", "acknowledged_by", "acknowledged_at_ns", "verdict", "runbook", "link", "evidence_ref", "resolve_reason", "incident")
    class EvidenceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    FIRED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_BY_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    RUNBOOK_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_REF_FIELD_NUMBER: _ClassVar[int]
    RESOLVE_REASON_FIELD_NUMBER: _ClassVar[int]
    INCIDENT_FIELD_NUMBER: _ClassVar[int]
    fingerprint: str
    episode: str
    status: AlertStatus
    rule: str
    cluster: str
    node: str
    entity: str
    kind: FindingKind
    severity: _event_pb2.Severity
    started_at_ns: int
    fired_at_ns: int
    resolved_at_ns: int
    at_ns: int
    value: float
    limit: float
    metric: str
    unit: str
    summary: str
    evidence: _containers.ScalarMap[str, str]
    owner: _allocation_pb2.Workload
    mode: AlertMode
    simulated: bool
    acknowledged_by: str
    acknowledged_at_ns: int
    verdict: AlertVerdict
    runbook: str
    link: _containers.RepeatedScalarFieldContainer[str]
    evidence_ref: str
    resolve_reason: ResolveReason
    incident: str
    def __init__(self, fingerprint: _Optional[str] = ..., episode: _Optional[str] = ..., status: _Optional[_Union[AlertStatus, str]] = ..., rule: _Optional[str] = ..., cluster: _Optional[str] = ..., node: _Optional[str] = ..., entity: _Optional[str] = ..., kind: _Optional[_Union[FindingKind, str]] = ..., severity: _Optional[_Union[_event_pb2.Severity, str]] = ..., started_at_ns: _Optional[int] = ..., fired_at_ns: _Optional[int] = ..., resolved_at_ns: _Optional[int] = ..., at_ns: _Optional[int] = ..., value: _Optional[float] = ..., limit: _Optional[float] = ..., metric: _Optional[str] = ..., unit: _Optional[str] = ..., summary: _Optional[str] = ..., evidence: _Optional[_Mapping[str, str]] = ..., owner: _Optional[_Union[_allocation_pb2.Workload, _Mapping]] = ..., mode: _Optional[_Union[AlertMode, str]] = ..., simulated: _Optional[bool] = ..., acknowledged_by: _Optional[str] = ..., acknowledged_at_ns: _Optional[int] = ..., verdict: _Optional[_Union[AlertVerdict, str]] = ..., runbook: _Optional[str] = ..., link: _Optional[_Iterable[str]] = ..., evidence_ref: _Optional[str] = ..., resolve_reason: _Optional[_Union[ResolveReason, str]] = ..., incident: _Optional[str] = ...) -> None: ...

class AlertState(_message.Message):
    __slots__ = ("alert", "last_finding", "clear_since_ns", "findings_offset", "unpublished", "hold_ns", "clear_ns")
    ALERT_FIELD_NUMBER: _ClassVar[int]
    LAST_FINDING_FIELD_NUMBER: _ClassVar[int]
    CLEAR_SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_OFFSET_FIELD_NUMBER: _ClassVar[int]
    UNPUBLISHED_FIELD_NUMBER: _ClassVar[int]
    HOLD_NS_FIELD_NUMBER: _ClassVar[int]
    CLEAR_NS_FIELD_NUMBER: _ClassVar[int]
    alert: Alert
    last_finding: Finding
    clear_since_ns: int
    findings_offset: int
    unpublished: AlertStatus
    hold_ns: int
    clear_ns: int
    def __init__(self, alert: _Optional[_Union[Alert, _Mapping]] = ..., last_finding: _Optional[_Union[Finding, _Mapping]] = ..., clear_since_ns: _Optional[int] = ..., findings_offset: _Optional[int] = ..., unpublished: _Optional[_Union[AlertStatus, str]] = ..., hold_ns: _Optional[int] = ..., clear_ns: _Optional[int] = ...) -> None: ...

class Forecast(_message.Message):
    __slots__ = ("cluster", "node", "entity", "uid", "metric", "unit", "model", "made_at_ns", "history_until_ns", "history_points", "step_ns", "p50", "p05", "p95", "limit", "breach_probability_ratio", "eta_p10_seconds", "eta_p50_seconds", "eta_p90_seconds", "backtest_mase", "withdrawn", "withdrawn_reason", "valid_until_ns", "current", "simulated")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MADE_AT_NS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_POINTS_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    P50_FIELD_NUMBER: _ClassVar[int]
    P05_FIELD_NUMBER: _ClassVar[int]
    P95_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BREACH_PROBABILITY_RATIO_FIELD_NUMBER: _ClassVar[int]
    ETA_P10_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ETA_P50_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ETA_P90_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BACKTEST_MASE_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_REASON_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    entity: str
    uid: str
    metric: str
    unit: str
    model: str
    made_at_ns: int
    history_until_ns: int
    history_points: int
    step_ns: int
    p50: _containers.RepeatedScalarFieldContainer[float]
    p05: _containers.RepeatedScalarFieldContainer[float]
    p95: _containers.RepeatedScalarFieldContainer[float]
    limit: float
    breach_probability_ratio: float
    eta_p10_seconds: float
    eta_p50_seconds: float
    eta_p90_seconds: float
    backtest_mase: float
    withdrawn: bool
    withdrawn_reason: str
    valid_until_ns: int
    current: float
    simulated: bool
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., entity: _Optional[str] = ..., uid: _Optional[str] = ..., metric: _Optional[str] = ..., unit: _Optional[str] = ..., model: _Optional[str] = ..., made_at_ns: _Optional[int] = ..., history_until_ns: _Optional[int] = ..., history_points: _Optional[int] = ..., step_ns: _Optional[int] = ..., p50: _Optional[_Iterable[float]] = ..., p05: _Optional[_Iterable[float]] = ..., p95: _Optional[_Iterable[float]] = ..., limit: _Optional[float] = ..., breach_probability_ratio: _Optional[float] = ..., eta_p10_seconds: _Optional[float] = ..., eta_p50_seconds: _Optional[float] = ..., eta_p90_seconds: _Optional[float] = ..., backtest_mase: _Optional[float] = ..., withdrawn: _Optional[bool] = ..., withdrawn_reason: _Optional[str] = ..., valid_until_ns: _Optional[int] = ..., current: _Optional[float] = ..., simulated: _Optional[bool] = ...) -> None: ...
