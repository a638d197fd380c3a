"""Learning rate schedules."""

import eager as torch
from eager.optim import SGD, lr_scheduler
from eager.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau, StepLR

w = torch.zeros(3, requires_grad=True)
optimizer = SGD([w], lr=1.0)
step = StepLR(optimizer, step_size=2, gamma=0.5)
cosine = CosineAnnealingLR(optimizer, T_max=10)
plateau = ReduceLROnPlateau(optimizer, mode="min", patience=3)
by_hand = lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda epoch: 0.95**epoch)
both = lr_scheduler.SequentialLR(optimizer, schedulers=[step, cosine], milestones=[5])
one_cycle = lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20)
for _ in range(4):
    (w * 2).sum().backward()
    optimizer.step()
    step.step()
    plateau.step(w.sum().item())
print(step.get_last_lr()[0] * 2, step.state_dict())
StepLR(optimizer)  # error: reportCallIssue
StepLR(optimizer, "2")  # error: reportArgumentType
StepLR(w, 2)  # error: reportArgumentType
CosineAnnealingLR(optimizer, t_max=10)  # error: reportCallIssue
lr_scheduler.StepLr(optimizer, 2)  # error: reportAttributeAccessIssue
step.get_lr_now()  # error: reportAttributeAccessIssue
