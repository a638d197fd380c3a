"""Programs that pick elements by their values: written back in place, or of a size that only the values know."""

from __future__ import annotations

import graphc
from eager import arange, cat, manual_seed, nn, no_grad, optim, rand, randn, tensor, topk, vmap, where, zeros
from tests.scenarios.harness import attempt, program, state


def inputs(n=5, shape=(4, 3)):
    """Some, none, all, and some again."""
    return [(randn(*shape), randn(*shape)) for _ in range(n - 2)] + [
        (randn(*shape), randn(*shape).abs()), (randn(*shape), -randn(*shape).abs())
    ]  # fmt: skip


@program
def augmented_assignments_to_arguments(compile):
    @compile
    def f(x, y):
        x[y < 0] += 10
        x[y[:, 0] < 0, 1] -= 3
        x[y[:, 0] < 0, 1:3] /= 2
        x[:, y[0] > 0] *= x[:, y[0] > 0]
        x[..., y[0] > 1] = 7
        view = x.view(-1)
        view[view < -1] = view[view < -1].exp() - 1
        turned = x.t()
        turned[turned > 9] **= 2
        return x.sum()

    found = []
    for x, y in inputs():
        found += [f(x, y), x]
    return found


@program
def gradients_through_what_is_picked(compile):
    @compile
    def f(x, w, y):
        z = x * 1
        z[x > 0] = x[x > 0].sqrt().log() * w  # nan elsewhere, also in the gradient
        z[y < 0] *= z[y < 0] + 2
        return z, x[x > 0].log().mean(), (1 / x[x > 0]).sum()

    found = []
    for x, y in inputs():
        x.requires_grad_()
        w = tensor(2.0, requires_grad=True)
        sum((t * t).sum() for t in f(x, w, y)).backward()
        found += [state(x), state(w)]
    return found


@program
def what_is_picked_by_a_count(compile):
    @compile
    def f(x, v):
        mask = x > 0
        picked = x[mask]
        x[mask] = v.reshape(-1)[: picked.shape[0]] + picked
        return picked, mask.nonzero(), where(mask), len(picked), picked.numel()

    found = []
    for x, v in [*inputs(), *inputs()]:
        found += [f(x, v), x]
    return found


@program
def what_is_picked_is_as_it_was(compile):
    @compile
    def f(x, y):
        mask = y > 0
        before = x[mask]
        x.add_(1)
        mask.logical_not_()
        after = x[mask]
        x[y > 0] = before
        return before * 2, after, x, mask

    return [f(x, y) for x, y in inputs()]


@program
def writes_to_what_is_picked(compile):
    @compile
    def f(x):
        picked = x[x > 0]
        again = picked
        picked += 1
        picked.mul_(2)
        other = picked.clone()
        picked -= other * 0.5
        return picked, again, picked is again, other, x

    return [f(x) for x, _ in inputs()]


@program
def dtypes_of_what_is_picked(compile):
    @compile
    def f(x):
        whole, half, flags = (x * 10).long(), x.half(), x > 0
        whole[whole > 3] //= 2
        whole[x < 0] %= 5
        half[half > 0] *= 3
        flags[x < -1] = ~flags[x < -1]
        flags[x > 1] &= False
        return whole, half, flags, attempt(whole.__getitem__, x)[1:2], half[half > 0].sum(), flags[x > 0].sum()

    return [f(x) for x, _ in inputs()]


@program
def under_no_grad(compile):
    @compile
    def f(x, w):
        with no_grad():
            x[x > 1] = 1
            kept = (x * w)[x > 0]
        return kept, kept.requires_grad, (x * w)[x > 0].detach() * 2

    found = []
    for x, y in inputs():
        w = y.requires_grad_()
        found.append((f(x, w), x))
    return found


@program
def a_training_step_on_valid_examples(compile):
    manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 4))
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    seen = zeros((), dtype=tensor(1).dtype)

    @compile
    def step(x, y):
        optimizer.zero_grad()
        valid = y >= 0
        seen.add_(valid.sum())
        loss = nn.functional.cross_entropy(model(x[valid]), y[valid])
        loss.backward()
        optimizer.step()
        return loss

    found = []
    for k in (6, 3, 6, 1, 4, 3):
        x, y = randn(6, 3), where(arange(6) < k, arange(6) % 4, -1)
        found.append(step(x, y))
    return found, seen, [state(p) for p in model.parameters()], rand(2)


@program
def a_masked_loss(compile):
    @compile
    def step(w, x, valid):
        error = (x @ w - 1) ** 2
        loss = error[valid].mean() + 0.1 * w[w > 0].sum()
        loss.backward()
        return loss.detach(), error[valid].sum().detach()

    w = randn(3, requires_grad=True)
    return [(step(w, randn(4, 3), rand(4) > 0.4), w.grad.clone()) for _ in range(4)]


@program
def boxes_that_overlap_are_dropped(compile):
    @compile
    def keep(scores, ends):
        order = scores.argsort(descending=True)
        left = []
        while order.numel():
            best = order[0]
            left.append(best)
            rest = order[1:]
            order = rest[(ends[rest] - ends[best]).abs() > 0.3]
        return cat([k.reshape(1) for k in left])

    return [keep(rand(5), rand(5)) for _ in range(4)]


@program
def groups_of_equal_numbers(compile):
    @compile
    def f(keys, x):
        names, group, counts = keys.unique(return_inverse=True, return_counts=True)
        sums = zeros(len(names)).index_add(0, group, x)
        return names, sums / counts, keys.unique_consecutive(return_counts=True), keys.bincount(), keys.bincount(x)

    found = []
    for high in (1, 4, 9, 4):
        keys = (rand(8) * high).long()
        x = randn(8, requires_grad=True)
        names, means, *rest = f(keys, x.detach())
        found += [names, means, rest]
    return found


@program
def repeated_and_split(compile):
    @compile
    def f(x, n):
        long = x.repeat_interleave(n, 0)
        return long, nn.functional.one_hot(n), x.reshape(-1).split([int(n[0]), 12 - int(n[0])]), long.sum() * n.sum()

    return [f(randn(4, 3), (rand(4) * 4).long()) for _ in range(4)]


@program
def counts_inside_of_transforms(compile):
    mask = tensor([True, False, True])
    f = compile(lambda x: vmap(lambda row: row[mask] * 2)(x))
    g = compile(lambda x: graphc.cond(x.sum() > 0, lambda a: a[a > 0].sum(), lambda a: a.sum() * 2, x))
    return [(f(x), g(x), attempt(compile(lambda x: vmap(lambda row: row[row > 0])(x)), x)[1]) for x, _ in inputs(3)]


@program
def what_is_picked_outside_of_a_branch(compile):
    @compile
    def f(x):
        mask = x > 0
        picked = x[mask] * 2

        def write(total):
            y = x * 1
            y[mask] = picked + 1
            return y.sum() + picked.sum() + total

        return graphc.cond(x.sum() > 0, write, lambda total: total - (picked - 1).sum(), x.sum())

    return [f(x) for x, _ in inputs(3)]


@program
def batches_of_other_sizes(compile):
    f = compile(lambda x: (x[x > 0] * 2, x[x < 0].sum()))
    return [f(randn(n, 3)) for n in (4, 6, 9, 4, 6)]


@program
def the_best_of_those_that_pass(compile):
    @compile
    def f(x):
        passed = x[x > 0.5]
        return topk(passed, min(2, passed.numel())).values if passed.numel() else passed

    return [f(x.reshape(-1)) for x, _ in inputs()]
