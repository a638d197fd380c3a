"""The surface of `import eager`: PyTorch's names, Tensor's methods, printing, interop, files."""
