"""The engine: how operations run, are recorded, and are differentiated."""

import eager.engine.immediate  # noqa: F401  (it tells core what the immediate interpreter does)
