"""`graphc.compile`: which program a call runs, and when a new one is made."""
