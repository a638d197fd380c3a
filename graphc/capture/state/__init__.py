"""What Python code can read besides its tensors: found before a trace, guarded after it."""
