"""Files of objects that hold tensors: PyTorch's `.pt`, safetensors with a description, NumPy's `.npz`."""
