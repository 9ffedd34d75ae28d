// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Runs one exchange: NAME=VALUE ..., JSON on standard output.
#include "simulation.h"

#include <csignal>
#include <iostream>
#include <sys/prctl.h>

namespace
{
constexpr int kRefused = 2;
}

int
main(int count, char** words)
{
    // Who started this may be ended, and could not read the answer.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    try
    {
        ns3::Time::SetResolution(ns3::Time::PS);
        Simulation simulation(ParseOptions(count, words));
        simulation.Run();
        simulation.Report(std::cout);
        ns3::Simulator::Destroy();
    }
    catch (const std::exception& error)
    {
        std::cerr << error.what() << "\n";
        return kRefused;
    }
    return 0;
}
