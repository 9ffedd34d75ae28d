// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The body of a packet with lanes: one header per bank that they are added to, or one for
// less than a bank, as Width specifies.
#pragma once

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

// Makes the body of a contribution that adds nothing.
control Zeros(inout headers_t hdr) {
    Payload() payload;
    chunks_t lanes;

    action no_lanes() {
        lanes = { 0, 0, 0, 0, 0, 0, 0, 0 };
    }

    apply {
        no_lanes();
        payload.apply(hdr, lanes);
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

// Lanes of 16 or 8 bits, or none, on the wire. In the switch all lanes have 32: Widen converts a
// feature that is to be added, Narrow a sum that leaves.
//
// The lanes of a bank are cut into 2 or 4 parts, one behind the other. A word on the wire holds
// one lane of each part, that of the first part in its upper bits. Each number has a bias of half
// its range, so that it is not negative.

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

// Gives a feature lanes of 32 bits. Remembers of each packet whether its sum may be narrow.
// Must be applied before FirstChunk. A feature is wide after its first pass.
control Widen(inout headers_t hdr, inout metadata_t meta) {
    Zeros() zeros;

    action remember() {
        meta.loop.narrow = 1;
    }

    action wide() {
        hdr.switchgnn.bits = BITS_32;
    }

    action lanes16_of_16() {
        hdr.lanes16.setValid();
        hdr.lanes16.lanes = WITHOUT_BIAS_16(WIDE_16(hdr.lanes8.lanes, EIGHT), SIXTEEN);
        hdr.lanes8.setInvalid();
    }

    action bank_of_16() {
        hdr.chunk0.setValid();
        hdr.chunk0.lanes = BANK_OF_16(hdr.lanes16.lanes);
        hdr.lanes16.setInvalid();
    }

    // From the last bank to the first, so that no half is lost.
    action banks2_of_16() {
        hdr.chunk1.setValid();
        hdr.chunk1.lanes = BANK_OF_16(hdr.chunk0.lanes[511:0]);
        hdr.chunk0.lanes = BANK_OF_16(hdr.chunk0.lanes[1023:512]);
    }

    action banks4_of_16() {
        hdr.chunk2.setValid();
        hdr.chunk3.setValid();
        hdr.chunk3.lanes = BANK_OF_16(hdr.chunk1.lanes[511:0]);
        hdr.chunk2.lanes = BANK_OF_16(hdr.chunk1.lanes[1023:512]);
    }

    action banks8_of_16() {
        hdr.chunk4.setValid();
        hdr.chunk5.setValid();
        hdr.chunk6.setValid();
        hdr.chunk7.setValid();
        hdr.chunk7.lanes = BANK_OF_16(hdr.chunk3.lanes[511:0]);
        hdr.chunk6.lanes = BANK_OF_16(hdr.chunk3.lanes[1023:512]);
        hdr.chunk5.lanes = BANK_OF_16(hdr.chunk2.lanes[511:0]);
        hdr.chunk4.lanes = BANK_OF_16(hdr.chunk2.lanes[1023:512]);
    }

    action bank_of_8() {
        hdr.chunk0.setValid();
        hdr.chunk0.lanes = BANK_OF_8(hdr.lanes8.lanes);
        hdr.lanes8.setInvalid();
    }

    action banks2_of_8() {
        hdr.chunk0.setValid();
        hdr.chunk1.setValid();
        hdr.chunk1.lanes = BANK_OF_8(hdr.lanes16.lanes[255:0]);
        hdr.chunk0.lanes = BANK_OF_8(hdr.lanes16.lanes[511:256]);
        hdr.lanes16.setInvalid();
    }

    action banks4_of_8() {
        hdr.chunk1.setValid();
        hdr.chunk2.setValid();
        hdr.chunk3.setValid();
        hdr.chunk3.lanes = BANK_OF_8(hdr.chunk0.lanes[255:0]);
        hdr.chunk2.lanes = BANK_OF_8(hdr.chunk0.lanes[511:256]);
        hdr.chunk1.lanes = BANK_OF_8(hdr.chunk0.lanes[767:512]);
        hdr.chunk0.lanes = BANK_OF_8(hdr.chunk0.lanes[1023:768]);
    }

    action banks8_of_8() {
        hdr.chunk4.setValid();
        hdr.chunk5.setValid();
        hdr.chunk6.setValid();
        hdr.chunk7.setValid();
        hdr.chunk7.lanes = BANK_OF_8(hdr.chunk1.lanes[255:0]);
        hdr.chunk6.lanes = BANK_OF_8(hdr.chunk1.lanes[511:256]);
        hdr.chunk5.lanes = BANK_OF_8(hdr.chunk1.lanes[767:512]);
        hdr.chunk4.lanes = BANK_OF_8(hdr.chunk1.lanes[1023:768]);
    }

    apply {
        if (hdr.switchgnn.bits != BITS_32) {
            remember();
            if (hdr.switchgnn.kind == kind_t.FEATURE) {
                if (hdr.switchgnn.bits == NO_BODY) {
                    zeros.apply(hdr);
                } else if (hdr.switchgnn.bits == BITS_16) {
                    if (hdr.switchgnn.width == LANES_16) {
                        lanes16_of_16();
                    } else if (hdr.switchgnn.width == LANES_32) {
                        bank_of_16();
                    } else {
                        if (hdr.switchgnn.width >= LANES_128) {
                            if (hdr.switchgnn.width == LANES_256) {
                                banks8_of_16();
                            }
                            banks4_of_16();
                        }
                        banks2_of_16();
                    }
                } else if (hdr.switchgnn.width == LANES_32) {
                    bank_of_8();
                } else if (hdr.switchgnn.width == LANES_64) {
                    banks2_of_8();
                } else {
                    if (hdr.switchgnn.width == LANES_256) {
                        banks8_of_8();
                    }
                    banks4_of_8();
                }
                wide();
            }
        }
    }
}

// Whether the numbers of a bank need more than 16 or 8 bits. Bit i of the exclusive or is 0 where
// bits i and i - 1 of a number are equal; a number fits in b bits if they are from bit b on.
#define CHANGES(bank) ((bank) ^ ((bank) << 1))
#define ABOVE_16(bank) ((CHANGES(bank) & ALL(32w0xffff0000)) != 0)
#define ABOVE_8(bank) ((CHANGES(bank) & ALL(32w0xffffff00)) != 0)
// Fewer bits have a higher code.
#define NEED(bank) \
    if (ABOVE_16(bank)) { \
        need(BITS_32); \
    } else if (hdr.switchgnn.bits >= BITS_8 && ABOVE_8(bank)) { \
        need(BITS_16); \
    } else if (hdr.switchgnn.bits == NO_BODY && bank != 0) { \
        need(BITS_8); \
    }

// Gives a sum the fewest bits that hold all its lanes, and its body if these are less than 32.
control Narrow(inout headers_t hdr, in chunks_t sum) {
    NoPayload() no_payload;

    action need(bits_t bits) {
        hdr.switchgnn.bits = bits;
    }

    action make16_of_16() {
        hdr.lanes8.setValid();
        hdr.lanes8.lanes = NARROW_16(sum.chunk0[1023:768], sum.chunk0[767:512], EIGHT);
        hdr.ipv4.total_len = BARE_LENGTH + 32;
    }

    action make32_of_16() {
        hdr.lanes16.setValid();
        hdr.lanes16.lanes = HALF_OF(sum.chunk0);
        hdr.ipv4.total_len = BARE_LENGTH + 64;
    }

    action make64_of_16() {
        hdr.chunk0.setValid();
        hdr.chunk0.lanes = HALF_OF(sum.chunk0) ++ HALF_OF(sum.chunk1);
        hdr.ipv4.total_len = BARE_LENGTH + 128;
    }

    action make128_of_16() {
        hdr.chunk1.setValid();
        hdr.chunk1.lanes = HALF_OF(sum.chunk2) ++ HALF_OF(sum.chunk3);
        hdr.ipv4.total_len = BARE_LENGTH + 256;
    }

    action make256_of_16() {
        hdr.chunk2.setValid();
        hdr.chunk3.setValid();
        hdr.chunk2.lanes = HALF_OF(sum.chunk4) ++ HALF_OF(sum.chunk5);
        hdr.chunk3.lanes = HALF_OF(sum.chunk6) ++ HALF_OF(sum.chunk7);
        hdr.ipv4.total_len = BARE_LENGTH + 512;
    }

    action make32_of_8() {
        hdr.lanes8.setValid();
        hdr.lanes8.lanes = QUARTER_OF(sum.chunk0);
        hdr.ipv4.total_len = BARE_LENGTH + 32;
    }

    action make64_of_8() {
        hdr.lanes16.setValid();
        hdr.lanes16.lanes = QUARTER_OF(sum.chunk0) ++ QUARTER_OF(sum.chunk1);
        hdr.ipv4.total_len = BARE_LENGTH + 64;
    }

    action make128_of_8() {
        hdr.chunk0.setValid();
        hdr.chunk0.lanes = QUARTER_OF(sum.chunk0) ++ QUARTER_OF(sum.chunk1)
            ++ QUARTER_OF(sum.chunk2) ++ QUARTER_OF(sum.chunk3);
        hdr.ipv4.total_len = BARE_LENGTH + 128;
    }

    action make256_of_8() {
        hdr.chunk1.setValid();
        hdr.chunk1.lanes = QUARTER_OF(sum.chunk4) ++ QUARTER_OF(sum.chunk5)
            ++ QUARTER_OF(sum.chunk6) ++ QUARTER_OF(sum.chunk7);
        hdr.ipv4.total_len = BARE_LENGTH + 256;
    }

    apply {
        need(NO_BODY);
        NEED(sum.chunk0)
        if (hdr.switchgnn.width >= LANES_64) {
            NEED(sum.chunk1)
            if (hdr.switchgnn.width >= LANES_128) {
                NEED(sum.chunk2)
                NEED(sum.chunk3)
                if (hdr.switchgnn.width == LANES_256) {
                    NEED(sum.chunk4)
                    NEED(sum.chunk5)
                    NEED(sum.chunk6)
                    NEED(sum.chunk7)
                }
            }
        }
        if (hdr.switchgnn.bits == BITS_8 && hdr.switchgnn.width < LANES_32) {
            need(BITS_16);
        }
        if (hdr.switchgnn.bits == BITS_16 && hdr.switchgnn.width == LANES_8) {
            need(BITS_32);
        }
        no_payload.apply(hdr);
        if (hdr.switchgnn.bits == BITS_16) {
            if (hdr.switchgnn.width == LANES_16) {
                make16_of_16();
            } else if (hdr.switchgnn.width == LANES_32) {
                make32_of_16();
            } else {
                make64_of_16();
                if (hdr.switchgnn.width >= LANES_128) {
                    make128_of_16();
                    if (hdr.switchgnn.width == LANES_256) {
                        make256_of_16();
                    }
                }
            }
        } else if (hdr.switchgnn.bits == BITS_8) {
            if (hdr.switchgnn.width == LANES_32) {
                make32_of_8();
            } else if (hdr.switchgnn.width == LANES_64) {
                make64_of_8();
            } else {
                make128_of_8();
                if (hdr.switchgnn.width == LANES_256) {
                    make256_of_8();
                }
            }
        }
    }
}
