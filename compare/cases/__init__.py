"""Cases: one call of the user's function, its program as graphs, and what a mode gives for it."""
