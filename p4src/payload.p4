// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The body of a packet with lanes: one header per bank that they are added to, or one for
// less than a bank, as Width specifies.
#pragma once

#include "metadata.p4"

// The lanes for the first bank, padded with 0 where the frame is narrower.
control FirstChunk(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.chunk0.isValid()) {
            meta.first = hdr.chunk0.lanes;
        } else if (hdr.lanes16.isValid()) {
            meta.first = hdr.lanes16.lanes ++ 512w0;
        } else if (hdr.lanes8.isValid()) {
            meta.first = hdr.lanes8.lanes ++ 768w0;
        }
    }
}

#define MAKE(b, bank) \
    hdr.chunk##b.setValid(); \
    hdr.chunk##b.lanes = bank;

// Makes the body of a sum, or of a contribution of zeros, for `size` lanes of 32 bits.
control Payload(inout headers_t hdr, in chunks_t lanes, in width_t size) {
    apply {
        if (size == LANES_8) {
            hdr.lanes8.setValid();
            hdr.lanes8.lanes = lanes.chunk0[1023:768];
            hdr.ipv4.total_len = BARE_LENGTH + 32;
        } else if (size == LANES_16) {
            hdr.lanes16.setValid();
            hdr.lanes16.lanes = lanes.chunk0[1023:512];
            hdr.ipv4.total_len = BARE_LENGTH + 64;
        } else {
            MAKE(0, lanes.chunk0)
            hdr.ipv4.total_len = BARE_LENGTH + 128;
            if (size >= LANES_64) {
                MAKE(1, lanes.chunk1)
                hdr.ipv4.total_len = BARE_LENGTH + 256;
                if (size >= LANES_128) {
                    MAKE(2, lanes.chunk2)
                    MAKE(3, lanes.chunk3)
                    hdr.ipv4.total_len = BARE_LENGTH + 512;
                    if (size == LANES_256) {
                        MAKE(4, lanes.chunk4)
                        MAKE(5, lanes.chunk5)
                        MAKE(6, lanes.chunk6)
                        MAKE(7, lanes.chunk7)
                        hdr.ipv4.total_len = BARE_LENGTH + 1024;
                    }
                }
            }
        }
    }
}

// Makes the body of a contribution that adds nothing.
control Zeros(inout headers_t hdr) {
    Payload() payload;

    apply {
        payload.apply(hdr, { 0, 0, 0, 0, 0, 0, 0, 0 }, hdr.switchgnn.width);
    }
}

// Removes the body.
control NoPayload(inout headers_t hdr) {
    apply {
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
}

// Lanes of 16 or 8 bits, or none, on the wire. In the switch all lanes have 32: Widen converts a
// feature that is to be added, Narrow a sum that leaves. A word on the wire holds one lane of each
// half or quarter of a bank, the first in its upper bits, with a bias of half its range.

// The same word in 8 or 16 lanes, or in all 32 of a bank.
#define EIGHT(w) (w ++ w ++ w ++ w ++ w ++ w ++ w ++ w)
#define SIXTEEN(w) (EIGHT(w) ++ EIGHT(w))
#define ALL(w) (SIXTEEN(w) ++ SIXTEEN(w))

// A lane becomes its number without the bias: no lane carries into the next one, as its top bit is
// 0 before the addition.
#define WITHOUT_BIAS_16(lanes, EACH) (((lanes) + EACH(32w0x7fff8000)) ^ EACH(32w0x80000000))
#define WITHOUT_BIAS_8(lanes, EACH) (((lanes) + EACH(32w0x7fffff80)) ^ EACH(32w0x80000000))
// The number in the lower bits of a lane gets its bias, as the top bit of a signed number is the
// complement of that of a biased one.
#define WITH_BIAS_16(words, EACH) ((words) ^ EACH(32w0x80008000))
#define WITH_BIAS_8(words, EACH) ((words) ^ EACH(32w0x80808080))

// Words with two lanes each, and the lanes; EACH(w) is w in all of the words.
#define WIDE_16(words, EACH) \
    ((((words) >> 16) & EACH(32w0x0000ffff)) ++ ((words) & EACH(32w0x0000ffff)))
#define NARROW_16(upper, lower, EACH) \
    WITH_BIAS_16((((upper) << 16) & EACH(32w0xffff0000)) | ((lower) & EACH(32w0x0000ffff)), EACH)
// The same with four lanes of a bank in each word.
#define WIDE_8(words) \
    ((((words) >> 24) & EIGHT(32w0xff)) ++ (((words) >> 16) & EIGHT(32w0xff)) \
     ++ (((words) >> 8) & EIGHT(32w0xff)) ++ ((words) & EIGHT(32w0xff)))
#define NARROW_8(lanes) \
    WITH_BIAS_8((((lanes)[1023:768] << 24) & EIGHT(32w0xff000000)) \
                | (((lanes)[767:512] << 16) & EIGHT(32w0x00ff0000)) \
                | (((lanes)[511:256] << 8) & EIGHT(32w0x0000ff00)) \
                | ((lanes)[255:0] & EIGHT(32w0x000000ff)), EIGHT)

// A bank of half or a quarter of its bytes, and the bank.
#define BANK_OF_16(half) WITHOUT_BIAS_16(WIDE_16(half, SIXTEEN), ALL)
#define BANK_OF_8(quarter) WITHOUT_BIAS_8(WIDE_8(quarter), ALL)
#define HALF_OF(bank) NARROW_16((bank)[1023:512], (bank)[511:0], SIXTEEN)
#define QUARTER_OF(bank) NARROW_8(bank)

// Gives a feature lanes of 32 bits, from the last bank to the first, so that no part is lost.
// Remembers of each packet whether its sum may be narrow.
// Must be applied before FirstChunk. A feature is wide after its first pass.
control Widen(inout headers_t hdr, inout metadata_t meta) {
    Zeros() zeros;

    apply {
        if (hdr.switchgnn.bits != BITS_32) {
            meta.loop.narrow = 1;
            if (hdr.switchgnn.kind == kind_t.FEATURE) {
                if (hdr.switchgnn.bits == NO_BODY) {
                    zeros.apply(hdr);
                } else if (hdr.switchgnn.bits == BITS_16 && hdr.switchgnn.width == LANES_16) {
                    hdr.lanes16.setValid();
                    hdr.lanes16.lanes = WITHOUT_BIAS_16(WIDE_16(hdr.lanes8.lanes, EIGHT), SIXTEEN);
                    hdr.lanes8.setInvalid();
                } else if (hdr.switchgnn.bits == BITS_16 && hdr.switchgnn.width == LANES_32) {
                    MAKE(0, BANK_OF_16(hdr.lanes16.lanes))
                    hdr.lanes16.setInvalid();
                } else if (hdr.switchgnn.bits == BITS_16) {
                    if (hdr.switchgnn.width >= LANES_128) {
                        if (hdr.switchgnn.width == LANES_256) {
                            MAKE(7, BANK_OF_16(hdr.chunk3.lanes[511:0]))
                            MAKE(6, BANK_OF_16(hdr.chunk3.lanes[1023:512]))
                            MAKE(5, BANK_OF_16(hdr.chunk2.lanes[511:0]))
                            MAKE(4, BANK_OF_16(hdr.chunk2.lanes[1023:512]))
                        }
                        MAKE(3, BANK_OF_16(hdr.chunk1.lanes[511:0]))
                        MAKE(2, BANK_OF_16(hdr.chunk1.lanes[1023:512]))
                    }
                    MAKE(1, BANK_OF_16(hdr.chunk0.lanes[511:0]))
                    MAKE(0, BANK_OF_16(hdr.chunk0.lanes[1023:512]))
                } else if (hdr.switchgnn.bits == BITS_8 && hdr.switchgnn.width == LANES_32) {
                    MAKE(0, BANK_OF_8(hdr.lanes8.lanes))
                    hdr.lanes8.setInvalid();
                } else if (hdr.switchgnn.bits == BITS_8 && hdr.switchgnn.width == LANES_64) {
                    MAKE(1, BANK_OF_8(hdr.lanes16.lanes[255:0]))
                    MAKE(0, BANK_OF_8(hdr.lanes16.lanes[511:256]))
                    hdr.lanes16.setInvalid();
                } else if (hdr.switchgnn.bits == BITS_8) {
                    if (hdr.switchgnn.width == LANES_256) {
                        MAKE(7, BANK_OF_8(hdr.chunk1.lanes[255:0]))
                        MAKE(6, BANK_OF_8(hdr.chunk1.lanes[511:256]))
                        MAKE(5, BANK_OF_8(hdr.chunk1.lanes[767:512]))
                        MAKE(4, BANK_OF_8(hdr.chunk1.lanes[1023:768]))
                    }
                    MAKE(3, BANK_OF_8(hdr.chunk0.lanes[255:0]))
                    MAKE(2, BANK_OF_8(hdr.chunk0.lanes[511:256]))
                    MAKE(1, BANK_OF_8(hdr.chunk0.lanes[767:512]))
                    MAKE(0, BANK_OF_8(hdr.chunk0.lanes[1023:768]))
                }
                hdr.switchgnn.bits = BITS_32;
            }
        }
    }
}

// The lanes of a sum in one bank.
#define BANK(b) meta.sum.lanes.chunk##b
// Whether the numbers of a bank need more than 16 or 8 bits. Bit i of the exclusive or is 0 where
// bits i and i - 1 of a number are equal; a number fits in b bits if they are from bit b on.
#define CHANGES(b) (BANK(b) ^ (BANK(b) << 1))
#define ABOVE_16(b) ((CHANGES(b) & ALL(32w0xffff0000)) != 0)
#define ABOVE_8(b) ((CHANGES(b) & ALL(32w0xffffff00)) != 0)
// Fewer bits have a higher code.
#define NEED(b) \
    if (ABOVE_16(b)) { \
        hdr.switchgnn.bits = BITS_32; \
    } else if (hdr.switchgnn.bits >= BITS_8 && ABOVE_8(b)) { \
        hdr.switchgnn.bits = BITS_16; \
    } else if (hdr.switchgnn.bits == NO_BODY && BANK(b) != 0) { \
        hdr.switchgnn.bits = BITS_8; \
    }
#define HALVES(b, c) (HALF_OF(BANK(b)) ++ HALF_OF(BANK(c)))
#define QUARTERS(b, c, d, e) \
    (QUARTER_OF(BANK(b)) ++ QUARTER_OF(BANK(c)) ++ QUARTER_OF(BANK(d)) ++ QUARTER_OF(BANK(e)))

// Gives a sum the fewest bits that hold all its lanes. The lanes of 2 or 4 banks move into one.
control Narrow(inout headers_t hdr, inout metadata_t meta) {
    apply {
        hdr.switchgnn.bits = NO_BODY;
        NEED(0)
        if (hdr.switchgnn.width >= LANES_64) {
            NEED(1)
            if (hdr.switchgnn.width >= LANES_128) {
                NEED(2)
                NEED(3)
                if (hdr.switchgnn.width == LANES_256) {
                    NEED(4)
                    NEED(5)
                    NEED(6)
                    NEED(7)
                }
            }
        }
        if (hdr.switchgnn.bits == BITS_8 && hdr.switchgnn.width < LANES_32) {
            hdr.switchgnn.bits = BITS_16;
        }
        if (hdr.switchgnn.bits == BITS_16 && hdr.switchgnn.width == LANES_8) {
            hdr.switchgnn.bits = BITS_32;
        }
        if (hdr.switchgnn.bits == BITS_16 && hdr.switchgnn.width == LANES_16) {
            BANK(0) = NARROW_16(BANK(0)[1023:768], BANK(0)[767:512], EIGHT) ++ 768w0;
        } else if (hdr.switchgnn.bits == BITS_16) {
            BANK(0) = HALVES(0, 1);
            if (hdr.switchgnn.width >= LANES_128) {
                BANK(1) = HALVES(2, 3);
                if (hdr.switchgnn.width == LANES_256) {
                    BANK(2) = HALVES(4, 5);
                    BANK(3) = HALVES(6, 7);
                }
            }
        } else if (hdr.switchgnn.bits == BITS_8) {
            BANK(0) = QUARTERS(0, 1, 2, 3);
            if (hdr.switchgnn.width == LANES_256) {
                BANK(1) = QUARTERS(4, 5, 6, 7);
            }
        }
    }
}
