// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A CRC over header and payload, so that a corrupted packet is dropped and never summed. It is
// verified when a packet arrives at a port and computed when one leaves, not inside the loop.
#ifndef _CHECKSUM_
#define _CHECKSUM_

#include "metadata.p4"

#define SWITCHGNN_FIELDS                                                    \
    hdr.switchgnn.src_id, hdr.switchgnn.dst_id, hdr.switchgnn.block_id,     \
    hdr.switchgnn.count, hdr.switchgnn.is_ack, hdr.switchgnn.is_fetch,      \
    hdr.switchgnn.ecn, hdr.switchgnn.resend, hdr.switchgnn.kind,            \
    hdr.switchgnn.version, hdr.switchgnn.bits, hdr.switchgnn.level,         \
    hdr.switchgnn.echo, hdr.switchgnn.fragment, hdr.switchgnn.width,        \
    hdr.switchgnn.feature_group,                                            \
    hdr.switchgnn.session, hdr.switchgnn.round

#define BARRIER_FIELDS                                                      \
    hdr.barrier.magnitude, hdr.barrier.plan, hdr.barrier.round,             \
    hdr.barrier.workers

#define CHUNKS_1 hdr.chunk0.lanes
#define CHUNKS_2 CHUNKS_1, hdr.chunk1.lanes
#define CHUNKS_4 CHUNKS_2, hdr.chunk2.lanes, hdr.chunk3.lanes
#define CHUNKS_8 \
    CHUNKS_4, hdr.chunk4.lanes, hdr.chunk5.lanes, hdr.chunk6.lanes, hdr.chunk7.lanes

// DO(condition, fields) for each kind of body.
#define EACH_BODY(DO) \
    DO(hdr.lanes8.isValid(), SWITCHGNN_FIELDS, hdr.lanes8.lanes) \
    DO(hdr.lanes16.isValid(), SWITCHGNN_FIELDS, hdr.lanes16.lanes) \
    DO(hdr.chunk0.isValid() && !hdr.chunk1.isValid(), SWITCHGNN_FIELDS, CHUNKS_1) \
    DO(hdr.chunk1.isValid() && !hdr.chunk2.isValid(), SWITCHGNN_FIELDS, CHUNKS_2) \
    DO(hdr.chunk3.isValid() && !hdr.chunk4.isValid(), SWITCHGNN_FIELDS, CHUNKS_4) \
    DO(hdr.chunk7.isValid(), SWITCHGNN_FIELDS, CHUNKS_8) \
    DO(hdr.barrier.isValid() && !hdr.waiting.isValid(), SWITCHGNN_FIELDS, BARRIER_FIELDS) \
    DO(hdr.waiting.isValid(), SWITCHGNN_FIELDS, BARRIER_FIELDS, hdr.waiting.pulses) \
    DO(hdr.switchgnn.isValid() && !hdr.lanes8.isValid() && !hdr.lanes16.isValid() \
       && !hdr.chunk0.isValid() && !hdr.barrier.isValid(), SWITCHGNN_FIELDS)

#define VERIFY(condition, ...) \
    verify_checksum(meta.loop.pass_number == 0 && condition, { __VA_ARGS__ }, \
                    hdr.switchgnn.checksum, HashAlgorithm.crc32);
#define UPDATE(condition, ...) \
    update_checksum(meta.seal == 1 && condition, { __VA_ARGS__ }, \
                    hdr.switchgnn.checksum, HashAlgorithm.crc32);

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        EACH_BODY(VERIFY)
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
        EACH_BODY(UPDATE)
    }
}

#endif
