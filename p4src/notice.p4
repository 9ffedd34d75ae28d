// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A worker to whom packets come marked cannot make its queue shorter by sending
// less: what waits there are sums of the others' features. So it tells the switch,
// which tells all workers, as a congestion notification packet of DCQCN tells the
// sender (Zhu et al., SIGCOMM 2015, section 3.1).
#ifndef _NOTICE_
#define _NOTICE_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Notice(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.from_above == 1) {
            meta.outcome = PASSED_ON;
            standard_metadata.mcast_grp = ALL_WORKERS_GROUP;
        } else if (meta.is_worker == 0 || hdr.switchgnn.src_id != (bit<32>) meta.worker) {
            meta.outcome = WRONG_PORT;
        } else {
            meta.outcome = NOTICED;
            if (meta.above_port == 0) {
                standard_metadata.mcast_grp = ALL_WORKERS_GROUP;
            } else {
                // It comes back from above, for all.
                hdr.switchgnn.src_id = meta.switch_number;
                standard_metadata.egress_spec = meta.above_port;
            }
        }
    }
}

#endif
