"""Jobs: a network is built, a plan installed, workers run, and their counts become a report."""
