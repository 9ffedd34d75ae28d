#pragma once

// A CRC over header and payload, so that a corrupted packet is dropped and never summed. It is
// verified when a packet arrives at a port and computed when one leaves, not inside the loop.
#define SWITCHGNN_FIELDS                                                    \
    hdr.switchgnn.src_id, hdr.switchgnn.dst_id, hdr.switchgnn.block_id,     \
    hdr.switchgnn.count, hdr.switchgnn.is_ack, hdr.switchgnn.is_fetch,      \
    hdr.switchgnn.ecn, hdr.switchgnn.resend, hdr.switchgnn.kind,            \
    hdr.switchgnn.version, hdr.switchgnn.bits, hdr.switchgnn.level,         \
    hdr.switchgnn.echo, hdr.switchgnn.fragment, hdr.switchgnn.pool,         \
    hdr.switchgnn.width, hdr.switchgnn.feature_group,                       \
    TURN_OF(hdr)

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(ARRIVES(meta) && hdr.switchgnn.isValid(), CHECKED,
                        hdr.switchgnn.checksum, HashAlgorithm.crc32);
    }
}

control ComputeChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.update_ipv4 == 1,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
              hdr.ipv4.total_len, hdr.ipv4.identification, hdr.ipv4.flags,
              hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
        update_checksum(meta.seal == 1, CHECKED, hdr.switchgnn.checksum, HashAlgorithm.crc32);
    }
}
