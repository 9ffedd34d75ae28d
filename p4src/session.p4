// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Which install this switch serves. A new install takes a higher session
// number, which makes all that earlier installs left in the registers old:
// P4Runtime cannot clear registers on BMv2.
#ifndef _SESSION_
#define _SESSION_

#include "headers.p4"
#include "metadata.p4"

control Session(inout metadata_t meta) {
    // members has one bit for every worker of the plan.
    // magnitude_limit is the largest magnitude, as float32 bits, that a worker may report.
    // width is that of the slots: no frame may be wider.
    // any_turn says that this switch may have been in the session already, and forgotten it.
    action set_session(bit<16> session, bit<32> plan, worker_set_t members,
                       bit<32> magnitude_limit, width_t width, bit<1> any_turn) {
        meta.loop.session = session;
        meta.plan = plan;
        meta.members = members;
        meta.magnitude_limit = magnitude_limit;
        meta.loop.width = width;
        meta.any_turn = any_turn;
    }

    table session {
        actions = { set_session; }
        default_action = set_session(0, 0, 0, 0, 0, 0);
        size = 1;
    }

    apply {
        session.apply();
    }
}

#endif
