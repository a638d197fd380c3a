"""The classic static style, and control flow."""

import eager as torch
import graphc
from eager import Tensor

x = graphc.placeholder((None, 3), torch.float32, name="x")
y = (x * x).sum()
dy = graphc.gradients(y, x)
with graphc.Session() as session:
    print(session.run([y, dy], feed_dict={x: torch.ones(2, 3)}))
square = graphc.function([x], y, name="square")
print(square(torch.ones(2, 3)))


def up(v: Tensor) -> Tensor:
    return v + 1


def down(v: Tensor) -> Tensor:
    return v - 1


print(graphc.cond(torch.tensor(True), up, down, torch.zeros(2)).shape)
print(graphc.while_loop(lambda v: v.sum() < 10, up, torch.ones(2)))
last, rows = graphc.scan(lambda carry, row: (carry + row, carry), torch.zeros(()), torch.arange(3.0))
print(last, rows, graphc.fori_loop(0, 3, lambda i, v: v + i, torch.zeros(2)))
graphc.disable()
graphc.enable()
graphc.Session(devices="cpu")  # error: reportCallIssue
session.run()  # error: reportCallIssue
session.runs([y])  # error: reportAttributeAccessIssue
graphc.while_loop(up, torch.ones(2))  # error: reportCallIssue
graphc.placeholder((None, 3), nme="x")  # error: reportCallIssue
graphc.cond(torch.tensor(True), up)  # error: reportCallIssue
dy.nosuch  # error: reportAttributeAccessIssue
