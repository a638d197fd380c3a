# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""Function transforms: `grad`, `vjp`, `jvp`, `vmap` and what is built from them. As `torch.func`."""

from eager.func.batching import debug_unwrap as debug_unwrap
from eager.func.derivatives import grad as grad, grad_and_value as grad_and_value, hessian as hessian, jacfwd as jacfwd, jacrev as jacrev, jvp as jvp, linearize as linearize, value_and_grad as value_and_grad, vjp as vjp
from eager.func.mapping import vmap as vmap
from eager.func.modules import functional_call as functional_call, functionalize as functionalize, stack_module_state as stack_module_state
from eager.nn.modules.batchnorm import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
