"""A page in the browser that polls the metrics of a run."""
