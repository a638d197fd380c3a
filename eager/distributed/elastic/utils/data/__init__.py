"""Data of a program that goes on in the middle. As `torch.distributed.elastic.utils.data`."""

from eager.distributed.elastic.utils.data.elastic_distributed_sampler import ElasticDistributedSampler

__all__ = ["ElasticDistributedSampler"]
