"""As `torch.fx.passes.utils`."""

from eager.core.missing import explain

explain(__name__)
