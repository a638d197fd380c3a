"""A classifier in the manner of pytorch/examples' mnist: argparse, transforms, NLL loss, StepLR, evaluation."""

import argparse

import eager as torch
import eager.nn.functional as F
from eager import nn, optim
from eager.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()  # noqa: UP008 - as such programs are written
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 4, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.log_softmax(self.fc1(torch.flatten(self.dropout1(x), 1)), dim=1)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = torch.as_tensor(mean), torch.as_tensor(std)

    def __call__(self, image):
        return (image.float() / 255).sub_(self.mean[:, None, None]).div_(self.std[:, None, None])


class Digits(torch.utils.data.Dataset):
    def __init__(self, n, transform):
        g = torch.Generator()
        g.manual_seed(2)
        self.images = torch.randint(0, 256, (n, 1, 8, 8), dtype=torch.uint8, generator=g)
        self.targets, self.transform = self.images.sum(dim=(1, 2, 3)) % 10, transform

    def __getitem__(self, index):
        return self.transform(self.images[index]), int(self.targets[index])

    def __len__(self):
        return self.images.size(0)


def train(args, model, device, train_loader, optimizer):
    model.train()
    losses = []
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test(model, device, test_loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data.to(device))
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss / len(test_loader.dataset), correct


def main(compile=True):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--no-cuda", action="store_true", default=False)
    args = parser.parse_args([])
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(1)
    device = torch.device("cuda" if use_cuda else "cpu")
    kwargs = {"num_workers": 1, "pin_memory": True, "shuffle": True} if use_cuda else {"shuffle": True}
    data = Digits(48, Normalize((0.1307,), (0.3081,)))
    train_loader = torch.utils.data.DataLoader(data, batch_size=16, **kwargs)
    test_loader = torch.utils.data.DataLoader(data, batch_size=48)
    model = Net().to(device)
    model = torch.compile(model, mode="reduce-overhead", backend="numpy") if compile else model
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    losses = []
    for _ in range(3):
        losses += train(args, model, device, train_loader, optimizer)
        loss, correct = test(model, device, test_loader)
        assert 0 <= correct <= 48
        losses.append(loss)
        scheduler.step()
    return losses
