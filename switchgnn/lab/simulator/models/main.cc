// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Simulates one exchange. Arguments are words NAME=VALUE; JSON goes to standard output.
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
    // The process that started this one may be ended; then nobody reads the answer.
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
