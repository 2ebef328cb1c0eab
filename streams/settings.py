"""Settings of the stream processors: one section per operator, and what their runners share."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from schemas.section import Section


class Attribute(Section):
    """The join of samples with allocations."""

    wait_seconds: float = Field(default=15.0, gt=0)
    """How long a sample waits for word of its owner before it is joined as *unknown*."""

    node_buffer_samples: int = Field(default=2_000, ge=1)
    """Most device samples of one node that may wait; past it the oldest are joined at once as *unknown*, and counted."""

    total_buffer_samples: int = Field(default=400_000, ge=1)
    """Most device samples that may wait in one process, all nodes together."""


class Detect(Section):
    """Thresholds, anomalies, silence, events and forecasts: what makes Findings."""

    rules: Path | None = None
    """A YAML file of rules that replaces the built-in ones; empty takes the built-in ones."""

    silence_seconds: float = Field(default=15.0, gt=0)
    """A node without a batch of samples for this long is silent; a rule of type `silent` may say otherwise."""

    repeat_seconds: float = Field(default=15.0, gt=0)
    """How often an active finding is sent again, in event time."""

    valid_seconds: float = Field(default=45.0, gt=0)
    """How long a finding stays true without being repeated; past it the signal is lost."""

    point_seconds: float = Field(default=10.0, ge=1, le=300)
    """The detectors of anomalies, bursts and unlike devices judge means over this long; a value that comes less often is judged at once."""

    seasonal: bool = True
    """Also learn what is usual at each hour of the day; takes 0.6 KiB more memory for each value that is watched."""

    explain_seconds: float = Field(default=600.0, ge=0)
    """How long a deploy, restart, maintenance or new configuration explains an anomaly that begins after it; one that lasts longer is
    raised all the same. 0 explains nothing."""

    context_events_per_entity: int = Field(default=5, ge=0)
    """How many of the newest context events are kept per entity, to be shown in the evidence."""


class Alerting(Section):
    """The life of an alert."""

    keep_firing_seconds: float = Field(default=0.0, ge=0)
    """How much longer than the rule's own clear time an alert keeps firing after its finding became inactive."""

    signal_lost_grace_seconds: float = Field(default=15.0, ge=0)
    """How long past its validity a finding may still be renewed; then its alert is resolved as *signal lost*."""

    save_seconds: float = Field(default=15.0, gt=0)
    """How often the state of an open alert is written down when only its value changes, in event time."""

    incident_window_seconds: float = Field(default=900.0, gt=0, le=3600)
    """An alert joins an incident whose last one of the same kind fired at most so long ago on its node or in its rack."""

    incident_linger_seconds: float = Field(default=300.0, ge=0, le=3600)
    """How long after the end of its last alert an incident goes on when another fires."""

    remembered_alerts: int = Field(default=100_000, ge=1_000)
    """Of how many closed alerts is known when they ended, so that repeated findings do not open them again."""


class Streams(Section):
    """All stream processors."""

    runner: Literal["faust", "direct"] = "faust"
    """`faust`: one event per step. `direct`: batches of up to 500 records, for high throughput. Switching needs a full stop of the role."""

    rebuild_seconds: float = Field(default=120.0, ge=0)
    """How far back the input is read again on assignment, to rebuild windowed state."""

    attribute: Attribute = Field(default_factory=Attribute)
    """The join of samples with allocations."""

    detect: Detect = Field(default_factory=Detect)
    """What makes findings."""

    alerting: Alerting = Field(default_factory=Alerting)
    """The life of an alert."""
