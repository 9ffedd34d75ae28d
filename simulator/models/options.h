// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What a simulation is told, as words NAME=VALUE.
#ifndef SWITCHGNN_OPTIONS_H
#define SWITCHGNN_OPTIONS_H

#include "background_options.h"
#include "congestion.h"
#include "link.h"

#include <map>
#include <string>
#include <vector>

struct Options
{
    /// The file of the arrays.
    std::string arrays;
    uint32_t workers;
    uint32_t blocks;
    uint32_t fragments;
    /// Whether hosts exchange copies, without the switch's sums.
    bool host_based;
    LinkOptions up;
    LinkOptions down;
    PaceOptions pace;
    /// Time of one pass through the loop; 0: no limit.
    Picoseconds pass;
    /// Slots of each pool of the strawman; empty: every destination has its own.
    std::vector<uint32_t> pools;
    BackgroundOptions background;
    bool trace;
};

Options ParseOptions(int count, char** words);

#endif
