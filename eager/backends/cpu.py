"""`torch.backends.cpu`."""


def get_cpu_capability() -> str:
    """ "DEFAULT": which instructions are used is NumPy's choice."""
    return "DEFAULT"
