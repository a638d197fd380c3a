"""A GAN with spectral norm, in the manner of pytorch/examples' dcgan: two optimizers, label smoothing, weight init."""

import argparse
import random

import eager as torch
import eager.nn as nn
import eager.nn.parallel
import eager.utils.data
from eager import optim
from eager.backends import cudnn


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight_orig if hasattr(m, "weight_orig") else m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, nz, ngf, nc):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, nc, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, nc, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.utils.spectral_norm(nn.Conv2d(nc, ndf, 4, 2, 1, bias=False)), nn.LeakyReLU(0.2, inplace=True),
            nn.utils.parametrizations.spectral_norm(nn.Conv2d(ndf, 1, 4, 1, 0, bias=False)), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def main(compile=True):
    opt = argparse.Namespace(manualSeed=7, nz=4, ngf=4, ndf=4, lr=2e-3, beta1=0.5, batchSize=8)
    random.seed(opt.manualSeed)
    torch.manual_seed(opt.manualSeed)
    cudnn.benchmark = True
    device = torch.device("cpu")
    dataset = torch.utils.data.TensorDataset(torch.randn(32, 1, 8, 8).tanh(), torch.zeros(32))
    loader = torch.utils.data.DataLoader(dataset, batch_size=opt.batchSize, shuffle=True, num_workers=0)
    netG, netD = Generator(opt.nz, opt.ngf, 1).to(device), Discriminator(1, opt.ndf).to(device)
    netG.apply(weights_init)
    netD.apply(weights_init)
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

    def step(real, noise):
        netD.zero_grad()
        label = torch.full((real.size(0),), 1.0, dtype=real.dtype, device=device)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        fake = netG(noise)
        label.fill_(0.0)
        errD_fake = criterion(netD(fake.detach()), label)
        errD_fake.backward()
        optimizerD.step()
        netG.zero_grad()
        label.fill_(1.0)
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
        return errD_real + errD_fake, errG

    step = torch.compile(step, backend="numpy", fullgraph=True) if compile else step
    losses = []
    for _ in range(2):
        for data, _ in loader:
            noise = torch.randn(data.size(0), opt.nz, 1, 1, device=device)
            losses += [x.item() for x in step(data.to(device), noise)]
    return losses
