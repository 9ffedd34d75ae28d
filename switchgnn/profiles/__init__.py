"""Profiles of switches, and whether a plan fits one."""

from switchgnn.profiles.profile import (
    UNLIMITED,
    PlanMemory,
    ProfileError,
    SwitchProfile,
    find_profile,
    known_profiles,
    plan_memory,
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
