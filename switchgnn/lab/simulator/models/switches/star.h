// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A star: one switch that all workers have a link to.
#ifndef SWITCHGNN_STAR_H
#define SWITCHGNN_STAR_H

#include "network/fabric.h"
#include "options.h"
#include "switches/switch.h"

#include <memory>

class Star : public Fabric
{
  public:
    /// schedule: null where the switch only hands copies on.
    Star(const Options& options, const Arrays& arrays, const Schedule* schedule);

    Receiver& EdgeOf(uint32_t) override
    {
        return *switch_;
    }

    void Attach(uint32_t, Link& down) override
    {
        switch_->Attach(down);
    }

    Tally Count() const override;

  private:
    std::unique_ptr<Slots> slots_;
    std::unique_ptr<Switch> switch_;
    // The same as switch_, if it adds.
    AddingSwitch* adding_ = nullptr;
};

#endif
