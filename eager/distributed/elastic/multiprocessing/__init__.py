"""Processes of a launcher. As `torch.distributed.elastic.multiprocessing`."""
