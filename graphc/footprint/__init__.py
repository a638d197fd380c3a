"""The memory of a program: predicted from its graph, read from XLA, and traded for work."""
