"""`make crash-test`: kill -9 of every process in turn, and of Kafka and InfluxDB, and a table of what was lost or doubled: nothing."""
