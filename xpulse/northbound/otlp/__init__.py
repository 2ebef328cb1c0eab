"""Pushes what the agent knows to an OpenTelemetry collector, over gRPC or HTTP; imported only where it is turned on."""
