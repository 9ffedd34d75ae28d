// Bundles: frames of 2, 4 or 8 rows, as the plan says. All rows are equally wide, and together they
// are groups of 8 lanes; a row has at most 32, 64 or 128. On the wire they stand one behind the
// other. In the switch each begins with a chunk, as banks need it: a row has 1, 2 or 4 chunks.
#pragma once

#include "metadata.p4"
#include "payload.p4"

// The chunks of the rows of a packet and of the slots. Rows of an all-reduce are alone. Must be applied
// on the first pass only; what it finds goes around the loop.
control Rows(in headers_t hdr, inout metadata_t meta) {
    // A slot takes 1, 2, 4 or 8 banks: the last one's number is a row of ones.
    action find_parts() {
        meta.last_of_row = meta.frame_width[4:2];
        meta.last_part = meta.width[4:2] | (meta.width[4:2] >> 1) | (meta.width[4:2] >> 2);
    }

    action find_rows() {
        meta.rows = meta.loop.rows;
        meta.row_lanes = ((bit<9>) meta.frame_width + 1) << (3 - (bit<2>) meta.loop.rows);
        meta.last_of_row = (meta.frame_width >> meta.loop.rows)[4:2];
        if (meta.last_of_row == 1) {
            meta.row_chunks = 1;
        } else if (meta.last_of_row != 0) {
            meta.row_chunks = 2;
        }
    }

    apply {
        find_parts();
        if (meta.loop.rows != 0 && !IS_REDUCE(hdr.switchgnn)) {
            find_rows();
        }
    }
}

// Whether rows stand on the wire as in the switch.
#define ROWS_FILL_CHUNKS(meta) (meta.row_lanes == (9w32 << meta.row_chunks))

// Where the content of chunk c begins on the wire, in lanes. If a row has 1, 2 or 4 chunks, this one is
// in row r1, r2 or r4.
#define FIND(c, r1, r2, r4) \
    if (meta.row_chunks == 0) { \
        part = 0; \
        at = meta.row_lanes * r1; \
    } else if (meta.row_chunks == 1) { \
        part = c - 2 * r2; \
        at = meta.row_lanes * r2 + (c - 2 * r2) * 32; \
    } else { \
        part = c - 4 * r4; \
        at = meta.row_lanes * r4 + (c - 4 * r4) * 32; \
    }
#define FIND_1 FIND(1, 1, 0, 0)
#define FIND_2 FIND(2, 2, 1, 0)
#define FIND_3 FIND(3, 3, 1, 0)
#define FIND_4 FIND(4, 4, 2, 1)
#define FIND_5 FIND(5, 5, 2, 1)
#define FIND_6 FIND(6, 6, 3, 1)
#define FIND_7 FIND(7, 7, 3, 1)

// Moves x, which has `bits` bits, by up to 31 lanes. BMv2 shifts by at most 256 bits.
#define TO_LEFT(x, bits, lanes) \
    if (lanes[4:4] == 1) { \
        x = x[bits - 513:0] ++ 512w0; \
    } \
    if (lanes[3:3] == 1) { \
        x = x[bits - 257:0] ++ 256w0; \
    } \
    x = x << (lanes[2:0] ++ 5w0);
#define TO_RIGHT(x, bits, lanes) \
    if (lanes[4:4] == 1) { \
        x = 512w0 ++ x[bits - 1:512]; \
    } \
    if (lanes[3:3] == 1) { \
        x = 256w0 ++ x[bits - 1:256]; \
    } \
    x = x >> (lanes[2:0] ++ 5w0);

// As no row is longer than its chunks, a chunk begins on the wire in one with a lower number, and
// also has lanes of the next one, or it begins in itself. A chain for each number:
#define BELOW_1(BOTH) if (at[7:5] == 0) { BOTH(0, 1) } else
#define BELOW_2(BOTH) BELOW_1(BOTH) if (at[7:5] == 1) { BOTH(1, 2) } else
#define BELOW_3(BOTH) BELOW_2(BOTH) if (at[7:5] == 2) { BOTH(2, 3) } else
#define BELOW_4(BOTH) BELOW_3(BOTH) if (at[7:5] == 3) { BOTH(3, 4) } else
#define BELOW_5(BOTH) BELOW_4(BOTH) if (at[7:5] == 4) { BOTH(4, 5) } else
#define BELOW_6(BOTH) BELOW_5(BOTH) if (at[7:5] == 5) { BOTH(5, 6) } else
#define BELOW_7(BOTH) BELOW_6(BOTH) if (at[7:5] == 6) { BOTH(6, 7) } else

#define FROM(n) pair = hdr.chunk##n.lanes ++ 1024w0;
#define FROM_BOTH(n, m) pair = hdr.chunk##n.lanes ++ hdr.chunk##m.lanes;
#define SPREAD(c) \
    FIND_##c \
    BELOW_##c(FROM_BOTH) { FROM(c) } \
    TO_LEFT(pair, 2048, at) \
    hdr.chunk##c.lanes = pair[2047:1024]; \
    CUT(c)
// Removes what belongs to the next row.
#define CUT(c) \
    if (part == meta.last_of_row) { \
        hdr.chunk##c.lanes = hdr.chunk##c.lanes & mask; \
    } else if (part > meta.last_of_row) { \
        hdr.chunk##c.lanes = 0; \
    }

#define MAKE_CHUNK(c) hdr.chunk##c.setValid();

// Moves the rows of a feature to where banks need them. So it goes around the loop. Must be applied
// after Pad and Rows.
control Spread(inout headers_t hdr, in metadata_t meta) {
    bit<9> at;
    bit<3> part;
    bit<5> behind;
    lanes_t mask;
    bit<2048> pair;

    // A chunk is read before its own content comes: the last one first.
    apply {
        behind = (bit<5>) -meta.row_lanes;
        mask = ~(lanes_t) 0;
        TO_LEFT(mask, 1024, behind)
        MAKE_CHUNK(0)
        MAKE_CHUNK(1)
        if (meta.rows + meta.row_chunks >= 2) {
            MAKE_CHUNK(2)
            MAKE_CHUNK(3)
            if (meta.rows + meta.row_chunks == 3) {
                LAST_FOUR_BANKS(MAKE_CHUNK)
                SPREAD(7)
                SPREAD(6)
                SPREAD(5)
                SPREAD(4)
            }
            SPREAD(3)
            SPREAD(2)
        }
        SPREAD(1)
        part = 0;
        CUT(0)
        hdr.ipv4.total_len = BARE_LENGTH + (16w128 << (meta.rows + meta.row_chunks));
    }
}

#define ONTO(n) meta.sum.lanes.chunk##n = meta.sum.lanes.chunk##n | pair[2047:1024];
#define ONTO_BOTH(n, m) \
    ONTO(n) \
    meta.sum.lanes.chunk##m = meta.sum.lanes.chunk##m | pair[1023:0];
#define GATHER(c) \
    FIND_##c \
    pair = meta.sum.lanes.chunk##c ++ 1024w0; \
    TO_RIGHT(pair, 2048, at) \
    meta.sum.lanes.chunk##c = 0; \
    BELOW_##c(ONTO_BOTH) { ONTO(c) }

// Moves the rows of a sum to where they are on the wire. What is behind a row in its chunks is 0.
control Gather(inout metadata_t meta) {
    bit<9> at;
    bit<3> part;
    bit<2048> pair;

    apply {
        GATHER(1)
        if (meta.rows + meta.row_chunks >= 2) {
            GATHER(2)
            GATHER(3)
        }
        if (meta.rows + meta.row_chunks == 3) {
            LAST_FOUR_BANKS(GATHER)
        }
    }
}

// Chunk c of a bundle, whose rows are on the shelf but for the last one.
#define SHELVE(c, of32, of64, of128) \
    row = 3w##c >> meta.row_chunks; \
    if (row == place) { \
        if (meta.row_chunks == 0) { \
            BANK(c) = BANK(of32); \
        } else if (meta.row_chunks == 1) { \
            BANK(c) = BANK(of64); \
        } else { \
            BANK(c) = BANK(of128); \
        } \
        if (full == 0) { \
            shelf##c.write(index, BANK(c)); \
        } \
    } else if (row > place) { \
        BANK(c) = 0; \
    } else if (full == 1) { \
        shelf##c.read(BANK(c), index); \
    }

#define SHELF(c) register<lanes_t>(MAX_POOLS * MAX_WORKERS) shelf##c;

// Packs the sums of a worker in a unit, as they become complete: the last row of a bundle, or of the
// unit, takes the others along. A recalled sum leaves alone. Must be applied after Result.
control Bundle(in headers_t hdr, inout metadata_t meta) {
    register<bit<96>>(MAX_POOLS * MAX_WORKERS) filled;  // as of a slot: marks of sums that wait, complete sums
    register<bit<128>>(MAX_POOLS * MAX_WORKERS) waiting_places;
    EACH_BANK(SHELF)

    bit<32> index;
    bit<96> content;
    bit<3> last; bit<3> place; bit<3> row;
    bit<1> full;
    bit<8> behind;

    action count_sum() {
        filled.read(content, index);
        content = content < meta.oldest ? meta.oldest : content;
        place = content[2:0] & last;
        content = content + 1;
        waiting_places.read(meta.sum.places, index);
        full = (place == last || content[15:0] == meta.result_sums) ? 1w1 : 1w0;
        meta.sum.ecn = meta.sum.ecn | content[16:16];
        content = meta.oldest + (bit<96>) ((meta.sum.ecn & ~full) ++ content[15:0]);
        filled.write(index, content);
    }

    apply {
        // A partial sum goes up alone.
        if (meta.rows != 0 && meta.send_sum == 1 && meta.partial == 0) {
            index = (bit<32>) hdr.switchgnn.pool * MAX_WORKERS + meta.loop.first_worker
                + (bit<32>) meta.result_worker;
            last = (3w1 << meta.rows) - 1;
            place = 0;
            full = 1;
            if (meta.adds == 1) {
                count_sum();
            }
            if (place == 0) {
                meta.sum.places = NO_PLACES;
            }
            behind = 8w112 - ((bit<8>) place << 4);
            meta.sum.places = (meta.sum.places & ~(128w0xffff << behind))
                | ((bit<128>) meta.result_place << behind);
            meta.sum.count = (count_t) place + 1;
            if (full == 0) {
                waiting_places.write(index, meta.sum.places);
                meta.send_sum = 0;
            }
            SHELVE(7, 0, 1, 3)
            SHELVE(6, 0, 0, 2)
            SHELVE(5, 0, 1, 1)
            SHELVE(4, 0, 0, 0)
            SHELVE(3, 0, 1, 3)
            SHELVE(2, 0, 0, 2)
            SHELVE(1, 0, 1, 1)
            SHELVE(0, 0, 0, 0)
        }
    }
}
