"""A training loop in the manner of Lightning: hooks, callbacks, samplers, a profile, checkpoints, early stop."""

import os
import tempfile

import eager as torch
import eager.nn.functional as F
from eager import nn
from eager.profiler import ProfilerActivity, profile, record_function, schedule
from eager.utils import benchmark
from eager.utils.data import DataLoader, Dataset, RandomSampler, Subset, WeightedRandomSampler, random_split


class Points(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(11)
        self.x = torch.randn(n, 2, generator=g)
        self.y = (self.x.prod(dim=1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}


class LitModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.LazyLinear(16), nn.SiLU(), nn.utils.parametrizations.weight_norm(nn.Linear(16, 2)))
        self.save_hyperparameters = {"lr": 0.05}
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    @property
    def device(self):
        return next(self.parameters()).device

    def training_step(self, batch, batch_idx):
        with record_function("training_step"):
            self.seen += len(batch["x"])
            return {"loss": F.cross_entropy(self.net(batch["x"]), batch["y"])}

    @torch.no_grad()
    def validation_step(self, batch, batch_idx):
        return (self.net(batch["x"]).argmax(-1) == batch["y"]).float().mean()

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.save_hyperparameters["lr"])
        return {
            "optimizer": optimizer,
            "lr_scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1),
        }


class EarlyStopping:
    def __init__(self, patience=3):
        self.best, self.wait, self.patience = -float("inf"), 0, patience

    def __call__(self, value):
        self.wait = 0 if value > self.best else self.wait + 1
        self.best = max(self.best, value)
        return self.wait > self.patience


def main(compile=True):
    torch.manual_seed(5)
    dataset = Points(96)
    train, valid = random_split(dataset, [72, 24], generator=torch.Generator().manual_seed(0))
    weights = torch.where(dataset.y[torch.tensor(train.indices)] == 1, 1.0, 2.0)
    sampler = WeightedRandomSampler(weights.tolist(), num_samples=64)
    loader = DataLoader(train, batch_size=16, sampler=sampler, drop_last=True)
    held_out = DataLoader(valid, batch_size=24, sampler=RandomSampler(Subset(valid, range(24))))
    module = LitModule()
    module.net(torch.zeros(1, 2))
    training_step = torch.compile(module.training_step, backend="numpy") if compile else module.training_step
    configured = module.configure_optimizers()
    optimizer, scheduler = configured["optimizer"], configured["lr_scheduler"]
    stop, losses, spans = EarlyStopping(), [], []
    module.net[0].register_forward_hook(lambda m, args, out: spans.append(out.shape[0]))
    with (
        tempfile.TemporaryDirectory() as folder,
        profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
            record_shapes=True,
            on_trace_ready=torch.profiler.tensorboard_trace_handler(folder),
        ) as prof,
    ):
        for epoch in range(6):
            module.train()
            for i, batch in enumerate(loader):
                optimizer.zero_grad(set_to_none=True)
                out = training_step({k: v.to(module.device) for k, v in batch.items()}, i)
                out["loss"].backward()
                optimizer.step()
                losses.append(out["loss"].detach())
                prof.step()
            module.eval()
            metric = torch.stack([module.validation_step(b, i) for i, b in enumerate(held_out)]).mean()
            scheduler.step(metric)
            path = os.path.join(folder, "last.ckpt")
            torch.save({"epoch": epoch, "state_dict": module.state_dict(), "optimizer": optimizer.state_dict()}, path)
            if stop(metric.item()):
                break
        assert len([name for name in os.listdir(folder) if name.endswith(".pt.trace.json")]) == 1
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    assert "ProfilerStep*" in {event.key for event in prof.key_averages()}
    again = LitModule()
    again.net(torch.zeros(1, 2))
    again.load_state_dict(checkpoint["state_dict"])
    assert again.seen == module.seen == 64 * (checkpoint["epoch"] + 1)
    timer = benchmark.Timer(
        "net(x)", globals={"net": again.net, "x": torch.zeros(4, 2)}, label="net", description="here"
    )
    assert "net" in str(benchmark.Compare([timer.timeit(2)]))
    return torch.stack(losses).tolist()
