"""Whether tests of what runs on a GPU can run here."""

import importlib.util
import os
from pathlib import Path


def cuda_missing():
    """Why PyTorch has no GPU here, or None."""
    # Checked first, because importing PyTorch takes a second.
    if not any(Path("/dev").glob("nvidia*")) and not Path("/dev/dxg").exists():
        return "there is no GPU of NVIDIA"
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed"
    # Forked programs must still be able to use the GPU.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    import torch  # noqa: PLC0415

    return None if torch.cuda.is_available() else "PyTorch has no CUDA here"
