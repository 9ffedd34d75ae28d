// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Which process is a worker. A process that starts anew in a session that has gone on
// would get the sums of the one before it: the switch has seen its sources under these
// tags. So each draws a number, its incarnation, and says it in every `done`. Another one
// may go on where a later round is opened, and nowhere else. The last `done` of a round may announce
// features of the next one (Echo): then that is the latest round that the process has been in.
// Must be applied to a `done` of a worker, after Session and Worker, not to one of a leaf.
#ifndef _INCARNATION_
#define _INCARNATION_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Incarnation(in headers_t hdr, inout metadata_t meta) {
    // session ++ round ++ number, of the latest round that the worker has been in.
    register<bit<80>>(MAX_WORKERS) incarnation;

    bit<80> known;
    bit<48> until;

    apply {
        until = meta.tag[79:32] + (bit<48>) hdr.switchgnn.echo;
        incarnation.read(known, (bit<32>) meta.worker);
        if (known[79:64] == meta.loop.session && known[31:0] != hdr.switchgnn.dst_id
                && (hdr.switchgnn.block_id != 0 || meta.tag[79:32] <= known[79:32])) {
            meta.outcome = WRONG_INCARNATION;
        } else if (until > known[79:32]) {
            incarnation.write((bit<32>) meta.worker, until ++ hdr.switchgnn.dst_id);
        }
    }
}

#endif
