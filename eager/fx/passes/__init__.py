"""As `torch.fx.passes`."""

from eager.core.missing import explain

explain(__name__)
