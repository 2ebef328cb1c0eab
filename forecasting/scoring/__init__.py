"""What forecasts were worth: each is compared with what happened after it."""
