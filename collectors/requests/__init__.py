"""Where a request to let the driver go can come from: a file, a signal, a label of the node. Each says "" or why."""
