// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The options of a simulation, given as words NAME=VALUE.
#pragma once

#include "background/background.h"
#include "hosts/host.h"
#include "network/link.h"

#include <map>
#include <string>
#include <vector>

/// Which switches of a leaf-spine complete sums whose contributions come from several leaves.
enum class Completion {
    /// The spines, as in the P4 program.
    SPINE,
    /// The leaves of the destinations: a variant that the P4 program does not implement.
    LEAF,
};

struct Options {
    /// The file of the arrays.
    std::string arrays;
    uint32_t workers;
    /// Numbers of leaves and spines; 0 for a star.
    uint32_t leaves;
    uint32_t spines;
    Completion completion;
    uint32_t blocks;
    /// Of a feature, exchanged one after another.
    uint32_t fragments;
    /// Fragments that are exchanged together: those of the feature that a slot holds.
    uint32_t together;
    /// Of the frames of each fragment of a feature; empty where hosts exchange copies.
    std::vector<uint32_t> fragment_bytes;
    /// Whether a barrier opens the exchange, as it does the first one of a tensor; each further one
    /// is opened by the last barrier of the one before.
    bool opening;
    /// Whether hosts exchange rows only, without the switch's sums.
    bool host_based;
    /// Of a full frame between hosts; 0: they exchange none.
    uint32_t packed_frame_bytes;
    LinkOptions up;
    LinkOptions down;
    PaceOptions pace;
    /// Of the longest frame of features or sums.
    uint32_t data_frame_bytes;
    /// Time of one pass through the loop; 0: no limit.
    Picoseconds pass;
    /// Slots of each pool of the strawman; empty: every destination has its own.
    std::vector<uint32_t> pools;
    BackgroundOptions background;
    bool trace;
};

Options ParseOptions(int count, char** words);
