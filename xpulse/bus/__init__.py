"""The one place that speaks to Kafka: settings, producers, the consume → process → commit loop, and what operates on topics."""
