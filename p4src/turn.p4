// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Whose turn it is: of all tags only the one behind the last barrier that all have passed.
// A packet for a later one would take slots away from the packets of now, and only comes
// from a worker that is broken: it is refused (invariant 3 keeps out the earlier ones).
//
// Features may be a step ahead of the barrier: when a round is over, those of the next one's first block
// may come while its opening is collected. So there are two tags: whose barrier it is, and the latest one
// that packets may have.
//
// Which tag follows a barrier, the workers say: each `done` has its block and fragment in
// Count and Feature_group, block 0 for the opening of the next round. The switch knows
// neither the width of features nor how many blocks a direction has. Barrier sees to it that
// all say the same, and writes the tag when the last `done` has come; a leaf when the
// switch above says so.
//
// A switch that was restarted does not know whose turn it is, nor does a spine that no
// barrier passes. The controller tells them so (`any_turn`), and until a barrier is complete they
// take everything.
// Must be applied on the first pass only, after Session and Worker.
#ifndef _TURN_
#define _TURN_

#include "headers.p4"
#include "metadata.p4"

control Turn(in headers_t hdr, inout metadata_t meta)
            (register<tag_t> turn, register<tag_t> early) {
    apply {
        turn.read(meta.turn, 0);
        early.read(meta.early, 0);
        meta.turn_known = meta.turn[79:64] == meta.loop.session ? 1w1 : 1w0;
        if (meta.turn_known == 0) {
            meta.turn = meta.loop.session ++ (meta.any_turn == 1 ? 64w0xffffffffffffffff : 64w0);
            meta.early = meta.turn;
        }
        if (!hdr.barrier.isValid() && hdr.switchgnn.kind != kind_t.NOTICE
                && meta.from_above == 0 && meta.tag > meta.early) {
            meta.outcome = WRONG_TURN;
        }
    }
}

#endif
