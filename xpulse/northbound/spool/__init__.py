"""What the agent could not deliver, on disk: bounded, in order, and sent oldest first when the bus is back."""
