"""Processes that compute together: groups, collectives, messages, objects. `eager.distributed` has the public names."""
