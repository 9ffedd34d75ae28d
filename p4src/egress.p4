// The path of each copy of a packet that leaves on a port.
#pragma once

#include "metadata.p4"
#include "congestion.p4"
#include "rewrite.p4"

control SwitchEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    PortShare() port_share; Congestion() congestion; Rewrite() rewrite;

    flag_t shared;

    apply {
        port_share.apply(hdr, standard_metadata, shared);
        congestion.apply(hdr, meta, standard_metadata, shared);
        if (standard_metadata.egress_port >= FIRST_LOOP_PORT) {
            meta.send_sum = 0;
            meta.send_ack = 0;
            recirculate_preserving_field_list(1);
        } else if (meta.flood == 1
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        } else if (hdr.switchgnn.isValid()) {
            rewrite.apply(hdr, meta, standard_metadata.egress_port);
        }
    }
}
