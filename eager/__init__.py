from eager import install as _install
_install.install()
from eager.tensor import Tensor, Parameter
