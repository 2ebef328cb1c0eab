"""Builds and starts the real servers that integration tests run against; README.md says what and how long."""
