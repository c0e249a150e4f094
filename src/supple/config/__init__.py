"""Settings of a solve: termination criteria, device, precision and threads."""
