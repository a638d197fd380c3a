"""The equivalence harness."""

import compare
import eager as torch
from eager import Tensor


def f(x: Tensor, y: Tensor) -> Tensor:
    return torch.log1p(x.exp()) @ y


x, y = torch.randn(3, 3), torch.randn(3)
report = compare.check(f, x, y, seed=1, modes=["graph", "compiled"])
print(report.ok, report.verdict, report)
if report.verdict is not compare.Verdict.IDENTICAL:
    print(compare.localize(f, x, y))
bench = compare.bench(f, x, y, min_time=0.01)
print(bench.agree, bench.timings)
small = compare.minimize(f, x, y, checks=10)
print(small.program)
certificate = compare.certify(f, x, y)
print(certificate.verdicts, compare.verify("f.json", f, x, y).reasons)
print(compare.fuzz(10, seed=0).coverage, compare.check_op("tanh"))
report.okay  # error: reportAttributeAccessIssue
compare.check()  # error: reportCallIssue
compare.chek(f, x, y)  # error: reportAttributeAccessIssue
compare.fuzz(count="10")  # error: reportArgumentType
compare.bench(f, x, y, min_time="1")  # error: reportArgumentType
compare.Verdict.FINE  # error: reportAttributeAccessIssue
