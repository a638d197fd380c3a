"""Certificates: what `check` has found, in a file that can be verified."""
