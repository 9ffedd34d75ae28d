"""The built-in trainer as the workers of a job: `torchrun ... -m switchgnn.train JOB`."""

from switchgnn.training.torchrun import main

if __name__ == "__main__":
    main()
