"""What several commands share: options, progress, and the steps of a job."""
