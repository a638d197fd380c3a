"""A ResNet with what timm and torchvision do around it: init by kind, EMA, channels_last, fusing, pruning."""

import copy
from collections import OrderedDict
from functools import partial

import eager as torch
from eager import nn
from eager.nn.modules.batchnorm import _BatchNorm
from eager.nn.modules.utils import _pair
from eager.nn.utils import prune
from eager.utils._pytree import tree_map_only


def drop_path(x, drop_prob=0.0, training=False):
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    return x * x.new_empty(shape).bernoulli_(keep_prob).div_(keep_prob)


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1, norm_layer=nn.BatchNorm2d, drop=0.0):
        super().__init__()
        conv = partial(nn.Conv2d, kernel_size=_pair(3), padding=1, bias=False)
        self.conv1, self.bn1 = conv(inplanes, planes, stride=stride), norm_layer(planes)
        self.relu, self.drop = nn.ReLU(inplace=True), drop
        self.conv2, self.bn2 = conv(planes, planes), norm_layer(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), norm_layer(planes))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(drop_path(out, self.drop, self.training) + identity)


class ResNet(nn.Module):
    def __init__(self, num_classes=5):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn1, self.act = nn.BatchNorm2d(4), nn.ReLU(inplace=True)
        self.layers = nn.Sequential(OrderedDict(a=BasicBlock(4, 4, drop=0.1), b=BasicBlock(4, 8, stride=2)))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (_BatchNorm, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        torch._assert(x.ndim == 4, "expected images")
        x = self.layers(self.act(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class ModelEma(nn.Module):
    def __init__(self, model, decay=0.9):
        super().__init__()
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values(), strict=True):
            ema_v.copy_(ema_v * self.decay + model_v * (1.0 - self.decay) if ema_v.is_floating_point() else model_v)


def accuracy(output, target, topk=(1,)):
    with torch.inference_mode():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target[None])
        return [correct[:k].flatten().sum(dtype=torch.float32) * (100.0 / target.size(0)) for k in topk]


def main(compile=True):
    torch.manual_seed(3)
    torch.use_deterministic_algorithms(True)
    try:
        model = ResNet().to(memory_format=torch.channels_last)
        ema = ModelEma(model)
        decay = [p for p in model.parameters() if p.ndim > 1]
        no_decay = [p for p in model.parameters() if p.ndim <= 1]
        optimizer = torch.optim.SGD(
            [{"params": decay, "weight_decay": 1e-4}, {"params": no_decay, "weight_decay": 0}], lr=0.1, momentum=0.9,
            nesterov=True,
        )  # fmt: skip
        scheduler = torch.optim.lr_scheduler.SequentialLR(
            optimizer,
            [torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=2),
             torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)],
            milestones=[2],
        )  # fmt: skip
        criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        if compile:
            model.compile(backend="numpy")
        images, target = torch.randn(8, 3, 8, 8), torch.randint(0, 5, (8,))
        batch = tree_map_only(torch.Tensor, lambda t: t.to("cpu", non_blocking=True), {"x": images, "y": [target]})
        losses = []
        for _ in range(8):
            model.train()
            loss = criterion(model(batch["x"].contiguous(memory_format=torch.channels_last)), batch["y"][0])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            ema.update(model)
            losses.append(loss.item())
        top1, top5 = accuracy(model(images), target, topk=(1, 5))
        assert 0 <= top1.item() <= top5.item() == 100
        restored = ResNet()
        state = {"module." + k: v for k, v in ema.module.state_dict().items()}
        nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        restored.load_state_dict(state)
        restored.eval()
        fused = nn.utils.fusion.fuse_conv_bn_eval(restored.conv1, restored.bn1)
        torch.testing.assert_close(fused(images), restored.bn1(restored.conv1(images)))
        prune.global_unstructured(
            [(m, "weight") for m in restored.modules() if isinstance(m, nn.Conv2d)],
            pruning_method=prune.L1Unstructured, amount=0.3,
        )  # fmt: skip
        assert prune.is_pruned(restored)
        return [*losses, restored(images).sum().item()]
    finally:
        torch.use_deterministic_algorithms(False)
