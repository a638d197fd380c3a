"""Starts the processes of a job, watches them, and ends all when one fails: `python -m graphc.launch`."""
