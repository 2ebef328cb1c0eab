"""Runs a processor under Faust: everything that Faust must be told, and nothing of what the processor knows."""
