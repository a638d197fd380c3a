"""What all of eager stands on: Tensor, tape, dtypes, views, modes, and the interpreter in force."""
