// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The body of a packet with lanes: one header per bank that they are added to, or one for
// less than a bank, as Width specifies.
#ifndef _PAYLOAD_
#define _PAYLOAD_

#include "metadata.p4"

// The lanes for the first bank, padded with 0 where the frame is narrower.
control FirstChunk(in headers_t hdr, inout metadata_t meta) {
    action widen8() {
        meta.first = hdr.lanes8.lanes ++ 768w0;
    }

    action widen16() {
        meta.first = hdr.lanes16.lanes ++ 512w0;
    }

    action take() {
        meta.first = hdr.chunk0.lanes;
    }

    apply {
        if (hdr.chunk0.isValid()) {
            take();
        } else if (hdr.lanes16.isValid()) {
            widen16();
        } else if (hdr.lanes8.isValid()) {
            widen8();
        }
    }
}

// Makes the body of a sum, or of a contribution of zeros.
control Payload(inout headers_t hdr, in chunks_t lanes) {
    action make8() {
        hdr.lanes8.setValid();
        hdr.lanes8.lanes = lanes.chunk0[1023:768];
        hdr.ipv4.total_len = BARE_LENGTH + 32;
    }

    action make16() {
        hdr.lanes16.setValid();
        hdr.lanes16.lanes = lanes.chunk0[1023:512];
        hdr.ipv4.total_len = BARE_LENGTH + 64;
    }

    action make32() {
        hdr.chunk0.setValid();
        hdr.chunk0.lanes = lanes.chunk0;
        hdr.ipv4.total_len = BARE_LENGTH + 128;
    }

    action make64() {
        hdr.chunk1.setValid();
        hdr.chunk1.lanes = lanes.chunk1;
        hdr.ipv4.total_len = BARE_LENGTH + 256;
    }

    action make128() {
        hdr.chunk2.setValid();
        hdr.chunk3.setValid();
        hdr.chunk2.lanes = lanes.chunk2;
        hdr.chunk3.lanes = lanes.chunk3;
        hdr.ipv4.total_len = BARE_LENGTH + 512;
    }

    action make256() {
        hdr.chunk4.setValid();
        hdr.chunk5.setValid();
        hdr.chunk6.setValid();
        hdr.chunk7.setValid();
        hdr.chunk4.lanes = lanes.chunk4;
        hdr.chunk5.lanes = lanes.chunk5;
        hdr.chunk6.lanes = lanes.chunk6;
        hdr.chunk7.lanes = lanes.chunk7;
        hdr.ipv4.total_len = BARE_LENGTH + 1024;
    }

    apply {
        if (hdr.switchgnn.width == LANES_8) {
            make8();
        } else if (hdr.switchgnn.width == LANES_16) {
            make16();
        } else {
            make32();
            if (hdr.switchgnn.width >= LANES_64) {
                make64();
                if (hdr.switchgnn.width >= LANES_128) {
                    make128();
                    if (hdr.switchgnn.width == LANES_256) {
                        make256();
                    }
                }
            }
        }
    }
}

// Removes the body.
control NoPayload(inout headers_t hdr) {
    action strip() {
        hdr.lanes8.setInvalid();
        hdr.lanes16.setInvalid();
        hdr.chunk0.setInvalid();
        hdr.chunk1.setInvalid();
        hdr.chunk2.setInvalid();
        hdr.chunk3.setInvalid();
        hdr.chunk4.setInvalid();
        hdr.chunk5.setInvalid();
        hdr.chunk6.setInvalid();
        hdr.chunk7.setInvalid();
        hdr.ipv4.total_len = BARE_LENGTH;
    }

    apply {
        strip();
    }
}

#endif
