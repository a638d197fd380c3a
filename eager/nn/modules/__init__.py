"""The modules, a family a file. As `torch.nn.modules`."""
