"""What programs name that a launcher starts anew. As `torch.distributed.elastic`; the launcher is `graphc launch`."""
