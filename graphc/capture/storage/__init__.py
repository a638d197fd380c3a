"""Memory under a trace: present values, views and their wholes, and which tensors share it."""
