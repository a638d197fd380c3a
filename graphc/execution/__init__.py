"""Running captured programs: inputs, XLA, effects, the tape of eager mode."""
