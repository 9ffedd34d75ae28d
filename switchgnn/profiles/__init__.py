"""Profiles of switches, and whether a plan fits one."""

from switchgnn.profiles.memory import PlanMemory, plan_memory
from switchgnn.profiles.profile import (
    UNLIMITED,
    ProfileError,
    SwitchProfile,
    find_profile,
    known_profiles,
)

__all__ = [
    "UNLIMITED",
    "PlanMemory",
    "ProfileError",
    "SwitchProfile",
    "find_profile",
    "known_profiles",
    "plan_memory",
]
