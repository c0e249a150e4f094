"""Production of samples: creation of stores, workers, shards and statistics."""
