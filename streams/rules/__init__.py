"""Rules as data: what counts as odd, how long it must hold, how bad it is, and how to say it."""

from streams.rules.load import DEFAULT_RULES, RulesError, load_rules
from streams.rules.model import Rule

__all__ = ["DEFAULT_RULES", "Rule", "RulesError", "load_rules"]
