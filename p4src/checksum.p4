// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A CRC over header and payload, so that a corrupted packet is dropped and
// never summed. It is checked when a packet comes from a port and made anew
// when one leaves; inside the loop it is left alone.
#ifndef _CHECKSUM_
#define _CHECKSUM_

#include "headers.p4"
#include "metadata.p4"

#define SWITCHGNN_FIELDS                                                    \
    hdr.switchgnn.src_id, hdr.switchgnn.dst_id, hdr.switchgnn.block_id,     \
    hdr.switchgnn.count, hdr.switchgnn.is_ack, hdr.switchgnn.is_fetch,      \
    hdr.switchgnn.ecn, hdr.switchgnn.resend, hdr.switchgnn.kind,            \
    hdr.switchgnn.version, hdr.switchgnn.level, hdr.switchgnn.echo,         \
    hdr.switchgnn.fragment, hdr.switchgnn.feature_group,                    \
    hdr.switchgnn.session, hdr.switchgnn.round

#define BARRIER_FIELDS                                                      \
    hdr.barrier.magnitude, hdr.barrier.plan, hdr.barrier.round,             \
    hdr.barrier.workers

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.payload.isValid() && meta.loop.pass_number == 0,
            { SWITCHGNN_FIELDS, hdr.payload.lanes },
            hdr.switchgnn.checksum, HashAlgorithm.crc32);
        verify_checksum(hdr.barrier.isValid() && !hdr.waiting.isValid(),
            { SWITCHGNN_FIELDS, BARRIER_FIELDS },
            hdr.switchgnn.checksum, HashAlgorithm.crc32);
        verify_checksum(hdr.waiting.isValid(),
            { SWITCHGNN_FIELDS, BARRIER_FIELDS, hdr.waiting.pulses },
            hdr.switchgnn.checksum, HashAlgorithm.crc32);
        verify_checksum(hdr.switchgnn.isValid() && !hdr.payload.isValid()
                && !hdr.barrier.isValid(),
            { SWITCHGNN_FIELDS },
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
        update_checksum(meta.seal == 1 && hdr.payload.isValid(),
            { SWITCHGNN_FIELDS, hdr.payload.lanes },
            hdr.switchgnn.checksum, HashAlgorithm.crc32);
        update_checksum(meta.seal == 1 && hdr.barrier.isValid() && !hdr.waiting.isValid(),
            { SWITCHGNN_FIELDS, BARRIER_FIELDS },
            hdr.switchgnn.checksum, HashAlgorithm.crc32);
        update_checksum(meta.seal == 1 && hdr.waiting.isValid(),
            { SWITCHGNN_FIELDS, BARRIER_FIELDS, hdr.waiting.pulses },
            hdr.switchgnn.checksum, HashAlgorithm.crc32);
        update_checksum(meta.seal == 1 && !hdr.payload.isValid() && !hdr.barrier.isValid(),
            { SWITCHGNN_FIELDS },
            hdr.switchgnn.checksum, HashAlgorithm.crc32);
    }
}

#endif
