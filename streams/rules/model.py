"""One rule as it stands in the YAML file: condition, times, severity and words, each checked when it is loaded."""

from __future__ import annotations

import string
from typing import Final, Literal

from pydantic import Field, field_validator, model_validator

from schemas.section import Section
from schemas.telemetry import v1
from streams.rules.condition import Above, Below, Condition, Forecasted, Happened, Silent
from streams.rules.vocabulary import SERVICE_METRICS

Severity = Literal["info", "warning", "critical"]
Mode = Literal["shadow", "notify"]

WORDS: Final = frozenset(
    (
        "cluster",
        "code",
        "detector",
        "entity",
        "eta",
        "expected",
        "index",
        "limit",
        "metric",
        "model",
        "node",
        "owner",
        "probability",
        "rule",
        "score",
        "text",
        "uid",
        "value",
    )
)
"""What a summary may mention in braces; what is not known of a finding is shown as `unknown`."""

_SEVERITY: Final = {"info": v1.Severity.SEVERITY_INFO, "warning": v1.Severity.SEVERITY_WARNING, "critical": v1.Severity.SEVERITY_CRITICAL}
_MODE: Final = {"shadow": v1.AlertMode.ALERT_MODE_SHADOW, "notify": v1.AlertMode.ALERT_MODE_NOTIFY}


class Rule(Section):
    """What is odd (`when`), of what, for how long, how bad, and in which words."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)
    """Identity of the rule: snake_case, unique in the file; it goes into alert fingerprints."""

    meaning: str = Field(min_length=1)
    """One sentence: what a person should understand when it fires."""

    entity: Literal["device", "node", "service"] = "device"
    """What the finding is about."""

    when: Condition
    """What is odd."""

    hold_seconds: float = Field(default=0.0, ge=0)
    """How long it must be odd before an alert fires."""

    clear_seconds: float = Field(default=0.0, ge=0)
    """How long it must stay well before the alert resolves."""

    severity: Severity = "warning"
    """How bad it is."""

    mode: Mode = "notify"
    """`shadow`: evaluated and stored, never notified."""

    unless: tuple[str, ...] = ()
    """Names of rules that say as much or more: while one of them stands for the same device, this one is not raised."""

    runbook: str = ""
    """Where the remedy is written."""

    summary: str = Field(min_length=1)
    """The finding in one line; words in braces are filled in."""

    @field_validator("summary")
    @classmethod
    def _only_known_words(cls, text: str) -> str:
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError(f"{error}; write {{{{ and }}}} for braces") from None
        for _, word, spec, conversion in parsed:
            if word is None:
                continue
            if word not in WORDS:
                raise ValueError(f"no word {{{word}}}; known: {', '.join(sorted(WORDS))}")
            if spec or conversion:
                raise ValueError(f"{{{word}}} takes no format; values come with their unit")
        return text

    @model_validator(mode="after")
    def _fits_its_entity(self) -> Rule:
        if isinstance(self.when, Silent):
            fit = "node"
        elif isinstance(self.when, Above | Below | Forecasted) and self.when.metric in SERVICE_METRICS:
            fit = "service"
        else:
            fit = "device"
        if self.entity != fit and not (isinstance(self.when, Happened) and self.entity == "node"):
            subject = self.when.metric if isinstance(self.when, Above | Below | Forecasted) else f"type {self.when.type}"
            raise ValueError(f"{subject} is of a {fit}, not of a {self.entity}; set entity: {fit}")
        if fit == "service" and isinstance(self.when, Above | Below):
            limits = (self.when.limit, self.when.clear)
            if self.when.guard is not None or any(limit.of is not None for limit in limits):
                raise ValueError("a service rule compares with a number only; drop guard and `of`")
        if self.unless and (self.entity != "device" or isinstance(self.when, Happened | Forecasted)):
            raise ValueError("unless is asked of rules about a device's readings only; drop it")
        return self

    @property
    def severity_number(self) -> v1.Severity:
        return _SEVERITY[self.severity]

    @property
    def mode_number(self) -> v1.AlertMode:
        return _MODE[self.mode]

    @property
    def hold_ns(self) -> int:
        return round(self.hold_seconds * 1e9)

    @property
    def clear_ns(self) -> int:
        return round(self.clear_seconds * 1e9)
