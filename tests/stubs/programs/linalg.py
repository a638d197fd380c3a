"""Linear algebra."""

import eager as torch
from eager import Tensor, linalg

a = torch.randn(4, 4, dtype=torch.float64)
spd: Tensor = a @ a.mT + 4 * torch.eye(4, dtype=torch.float64)
factor = linalg.cholesky(spd)
values, vectors = linalg.eigh(spd)
u, s, vh = linalg.svd(a, full_matrices=False)
print(torch.dist(u @ torch.diag(s) @ vh, a), values.min(), vectors.T.shape)
x = linalg.solve(spd, torch.ones(4, dtype=torch.float64))
print(linalg.norm(x, ord=2, dim=0), linalg.matrix_norm(a, "fro"), linalg.vector_norm(a, 1, dim=(0, 1)))
found = linalg.lstsq(a, torch.ones(4, 1, dtype=torch.float64))
print(found.solution.shape, found.rank)
q, r = torch.linalg.qr(a)
sign, logabsdet = linalg.slogdet(a)
print(torch.einsum("ij,jk->ik", q, r).allclose(a), sign * logabsdet.exp(), linalg.multi_dot([a, a, a]).trace())
print(linalg.matrix_power(a, 3), linalg.pinv(a, rtol=1e-8), torch.linalg.solve_triangular(factor, a, upper=False))
linalg.cholesky()  # error: reportCallIssue
linalg.eigh(spd, uplo="L")  # error: reportCallIssue
linalg.solve(spd, [1.0])  # error: reportArgumentType
linalg.choleski(spd)  # error: reportAttributeAccessIssue
linalg.svd(a).sigma  # error: reportAttributeAccessIssue
total: int = linalg.det(a)  # error: reportAssignmentType
p, q, r = linalg.qr(a)  # error: reportAssignmentType
