// The body of a packet with lanes: one header for each 32, which a bank adds, and one for the rest.
#pragma once

#include "metadata.p4"

#define REST_IS_VALID(hdr) (hdr.lanes8.isValid() || hdr.lanes16.isValid() || hdr.lanes24.isValid())

// The length of a packet with n chunks.
#define CHUNKS_LENGTH(n) (BARE_LENGTH + ((bit<16>) (n) << 7))

#define MAKE(b, bank) \
    hdr.chunk##b.setValid(); \
    hdr.chunk##b.lanes = bank;
#define MAKE_LAST(b) \
    MAKE(b, last) \
    hdr.ipv4.total_len = CHUNKS_LENGTH(b + 1);
#define MAKE_LAST_IF_FREE(b) \
    if (!hdr.chunk##b.isValid()) { \
        MAKE_LAST(b) \
    } else

// Replaces the rest by a chunk, filled with zeros: banks add whole chunks. So the packet goes around
// the loop.
control Pad(inout headers_t hdr) {
    lanes_t last;

    apply {
        if (REST_IS_VALID(hdr)) {
            if (hdr.lanes8.isValid()) {
                last = hdr.lanes8.lanes ++ 768w0;
            } else if (hdr.lanes16.isValid()) {
                last = hdr.lanes16.lanes ++ 512w0;
            } else {
                last = hdr.lanes24.lanes ++ 256w0;
            }
            hdr.lanes8.setInvalid();
            hdr.lanes16.setInvalid();
            hdr.lanes24.setInvalid();
            BUT_THE_LAST_BANK(MAKE_LAST_IF_FREE) {
                MAKE_LAST(7)
            }
        }
    }
}

#define LAST_FOUR_BANKS(DO) DO(4) DO(5) DO(6) DO(7)
// DO for each bank, with the conditions for the second, the third and the fifth one.
#define EACH_BANK_IF(DO, second, third, fifth) \
    DO(0) \
    if (second) { \
        DO(1) \
        if (third) { \
            DO(2) DO(3) \
            if (fifth) { \
                LAST_FOUR_BANKS(DO) \
            } \
        } \
    }

#define CHUNK_OF(c) \
    if (groups[5:2] > c) { \
        MAKE(c, lanes.chunk##c) \
    } else if (groups[5:2] == c) { \
        last = lanes.chunk##c; \
    }

// Makes the body of a sum, or of a contribution, of `groups` times 8 lanes of 32 bits. There must be
// no other body.
control Payload(inout headers_t hdr, in chunks_t lanes, in bit<6> groups) {
    lanes_t last;

    apply {
        last = 0;
        EACH_BANK_IF(CHUNK_OF, groups >= 4, groups >= 8, groups >= 16)
        if (groups[1:0] == 1) {
            hdr.lanes8.setValid();
            hdr.lanes8.lanes = last[1023:768];
        } else if (groups[1:0] == 2) {
            hdr.lanes16.setValid();
            hdr.lanes16.lanes = last[1023:512];
        } else if (groups[1:0] == 3) {
            hdr.lanes24.setValid();
            hdr.lanes24.lanes = last[1023:256];
        }
        hdr.ipv4.total_len = BARE_LENGTH + ((bit<16>) groups << 5);
    }
}

#define REMOVE_CHUNK(c) hdr.chunk##c.setInvalid();

// Removes the body.
control NoPayload(inout headers_t hdr) {
    apply {
        hdr.lanes8.setInvalid();
        hdr.lanes16.setInvalid();
        hdr.lanes24.setInvalid();
        EACH_BANK(REMOVE_CHUNK)
        hdr.ipv4.total_len = BARE_LENGTH;
    }
}

// Lanes of 16 or 8 bits, or none, on the wire. In the switch all lanes have 32: Widen converts a
// feature that is to be added, Narrow a sum that leaves. Two or four groups of 8 lanes become one of 8
// words: a word has the lanes at its place in each, the first in its upper bits, with a bias of half
// their range.

// The same word in 8 lanes, or in all 32 of a bank.
#define EIGHT(w) (w ++ w ++ w ++ w ++ w ++ w ++ w ++ w)
#define ALL(w) (EIGHT(w) ++ EIGHT(w) ++ EIGHT(w) ++ EIGHT(w))

// A lane becomes its number without the bias: no lane carries into the next one, as its top bit is
// 0 before the addition.
#define WITHOUT_BIAS_16(lanes) (((lanes) + ALL(32w0x7fff8000)) ^ ALL(32w0x80000000))
#define WITHOUT_BIAS_8(lanes) (((lanes) + ALL(32w0x7fffff80)) ^ ALL(32w0x80000000))
// The number in the lower bits of a lane gets its bias, as the top bit of a signed number is the
// complement of that of a biased one.
#define WITH_BIAS_16(words) ((words) ^ EIGHT(32w0x80008000))
#define WITH_BIAS_8(words) ((words) ^ EIGHT(32w0x80808080))

// 8 words with 2 or 4 lanes each, and the lanes.
#define WIDE_16(words) \
    ((((words) >> 16) & EIGHT(32w0x0000ffff)) ++ ((words) & EIGHT(32w0x0000ffff)))
#define NARROW_16(upper, lower) \
    WITH_BIAS_16((((upper) << 16) & EIGHT(32w0xffff0000)) | ((lower) & EIGHT(32w0x0000ffff)))
#define WIDE_8(words) \
    ((((words) >> 24) & EIGHT(32w0xff)) ++ (((words) >> 16) & EIGHT(32w0xff)) \
     ++ (((words) >> 8) & EIGHT(32w0xff)) ++ ((words) & EIGHT(32w0xff)))
#define NARROW_8(lanes) \
    WITH_BIAS_8((((lanes)[1023:768] << 24) & EIGHT(32w0xff000000)) \
                | (((lanes)[767:512] << 16) & EIGHT(32w0x00ff0000)) \
                | (((lanes)[511:256] << 8) & EIGHT(32w0x0000ff00)) \
                | ((lanes)[255:0] & EIGHT(32w0x000000ff)))

// A bank of half or a quarter of its bytes, and the bank.
#define BANK_OF_16(half) WITHOUT_BIAS_16(WIDE_16((half)[511:256]) ++ WIDE_16((half)[255:0]))
#define BANK_OF_8(quarter) WITHOUT_BIAS_8(WIDE_8(quarter))
#define HALF_OF(bank) \
    (NARROW_16((bank)[1023:768], (bank)[767:512]) ++ NARROW_16((bank)[511:256], (bank)[255:0]))
#define QUARTER_OF(bank) NARROW_8(bank)

#define SET(b, bank) lanes.chunk##b = bank;
#define BANKS_OF_16(c, b, d) \
    SET(b, BANK_OF_16(hdr.chunk##c.lanes[1023:512])) \
    SET(d, BANK_OF_16(hdr.chunk##c.lanes[511:0]))
#define BANKS_OF_8(c, b, d, e, f) \
    SET(b, BANK_OF_8(hdr.chunk##c.lanes[1023:768])) \
    SET(d, BANK_OF_8(hdr.chunk##c.lanes[767:512])) \
    SET(e, BANK_OF_8(hdr.chunk##c.lanes[511:256])) \
    SET(f, BANK_OF_8(hdr.chunk##c.lanes[255:0]))

// Gives a contribution lanes of 32 bits, zeros if it has no body. Remembers of each packet whether
// its sum may be narrow. Must be applied before Pad. A feature is wide after its first pass.
control Widen(inout headers_t hdr, inout metadata_t meta) {
    Pad() pad; NoPayload() no_payload; Payload() payload;

    chunks_t lanes;

    apply {
        if (hdr.switchgnn.bits != BITS_32) {
            meta.loop.narrow = 1;
        }
        if ((hdr.switchgnn.kind == kind_t.FEATURE && hdr.switchgnn.bits != BITS_32)
                || (!hdr.chunk0.isValid() && !REST_IS_VALID(hdr))) {
            lanes = { 0, 0, 0, 0, 0, 0, 0, 0 };
            pad.apply(hdr);
            if (hdr.chunk0.isValid() && hdr.switchgnn.bits == BITS_16) {
                BANKS_OF_16(0, 0, 1)
                if (hdr.chunk1.isValid()) {
                    BANKS_OF_16(1, 2, 3)
                    if (hdr.chunk2.isValid()) {
                        BANKS_OF_16(2, 4, 5)
                        if (hdr.chunk3.isValid()) {
                            BANKS_OF_16(3, 6, 7)
                        }
                    }
                }
            } else if (hdr.chunk0.isValid()) {
                BANKS_OF_8(0, 0, 1, 2, 3)
                if (hdr.chunk1.isValid()) {
                    BANKS_OF_8(1, 4, 5, 6, 7)
                }
            }
            no_payload.apply(hdr);
            payload.apply(hdr, lanes, GROUPS(hdr.switchgnn.width, BITS_32));
            if (hdr.switchgnn.kind == kind_t.FEATURE) {
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
        EACH_BANK_IF(NEED, hdr.switchgnn.width > LANES_32, hdr.switchgnn.width > LANES_64,
                     hdr.switchgnn.width > LANES_128)
        if (hdr.switchgnn.bits == BITS_8 && hdr.switchgnn.width <= LANES_16) {
            hdr.switchgnn.bits = BITS_16;
        }
        if (hdr.switchgnn.bits == BITS_16 && hdr.switchgnn.width == LANES_8) {
            hdr.switchgnn.bits = BITS_32;
        }
        if (hdr.switchgnn.bits == BITS_16) {
            BANK(0) = HALVES(0, 1);
            if (hdr.switchgnn.width > LANES_64) {
                BANK(1) = HALVES(2, 3);
                if (hdr.switchgnn.width > LANES_128) {
                    BANK(2) = HALVES(4, 5);
                    BANK(3) = HALVES(6, 7);
                }
            }
        } else if (hdr.switchgnn.bits == BITS_8) {
            BANK(0) = QUARTERS(0, 1, 2, 3);
            if (hdr.switchgnn.width > LANES_128) {
                BANK(1) = QUARTERS(4, 5, 6, 7);
            }
        }
    }
}
