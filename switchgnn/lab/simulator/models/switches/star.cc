// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/star.h"

Star::Star(const Options& options, const Arrays& arrays, const Schedule* schedule)
    : Fabric(options.workers)
{
    if (!schedule)
    {
        switch_ = std::make_unique<PlainSwitch>();
        return;
    }
    slots_ = std::make_unique<Slots>(arrays, options.pools, options.together);
    auto adding = std::make_unique<AddingSwitch>(*schedule, *slots_, options.pass);
    adding_ = adding.get();
    if (options.pace.losses)
    {
        adding_->ExpectLosses();
    }
    switch_ = std::move(adding);
}

Tally
Star::Count() const
{
    return adding_ ? adding_->Count() : Tally{};
}
