"""As `torch.fx.experimental`."""

from eager.core.missing import explain

explain(__name__)
