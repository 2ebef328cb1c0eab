"""`xpulse doctor --node`: what keeps the agent of this node from seeing everything, what is lost by it, and what to do."""
