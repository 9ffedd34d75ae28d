// The groups of lanes of a packet: a recall, and a feature without a body, which is zeros, get them; an
// acknowledgement loses them.
#pragma once

#include "metadata.p4"

#define HAVE(g) \
    hdr.group##g.setValid(); \
    hdr.group##g.lane0 = 0; \
    hdr.group##g.lane1 = 0; \
    hdr.group##g.lane2 = 0; \
    hdr.group##g.lane3 = 0; \
    hdr.group##g.lane4 = 0; \
    hdr.group##g.lane5 = 0; \
    hdr.group##g.lane6 = 0; \
    hdr.group##g.lane7 = 0;
#define WITH(n, more) \
    action have##n() { \
        more \
        hdr.ipv4.total_len = BARE_LENGTH + 32 * n; \
        hdr.switchgnn.bits = BITS_32; \
    }

control Body(inout headers_t hdr, in metadata_t meta) {
    WITH(1, HAVE(0))
    WITH(2, HAVE(0) HAVE(1))
    WITH(3, HAVE(0) HAVE(1) HAVE(2))
    WITH(4, HAVE(0) HAVE(1) HAVE(2) HAVE(3))
    WITH(5, HAVE(0) HAVE(1) HAVE(2) HAVE(3) HAVE(4))
    WITH(6, HAVE(0) HAVE(1) HAVE(2) HAVE(3) HAVE(4) HAVE(5))
    WITH(7, HAVE(0) HAVE(1) HAVE(2) HAVE(3) HAVE(4) HAVE(5) HAVE(6))
    WITH(8, HAVE(0) HAVE(1) HAVE(2) HAVE(3) HAVE(4) HAVE(5) HAVE(6) HAVE(7))
    table body {
        key = { hdr.switchgnn.width: exact; }
        actions = { have1; have2; have3; have4; have5; have6; have7; have8; NoAction; }
        const default_action = NoAction;
        SIZE(8)
        const entries = {
            0: have1();
            1: have2();
            2: have3();
            3: have4();
            4: have5();
            5: have6();
            6: have7();
            7: have8();
        }
    }

    apply {
        if (meta.looks == 1
                || (hdr.switchgnn.bits == NO_BODY && hdr.switchgnn.kind == kind_t.FEATURE)) {
            body.apply();
        }
    }
}

control NoBody(inout headers_t hdr, in metadata_t meta) {
    apply {
        if (meta.loop.leave[7:7] == 1) {
            EACH_GROUP(LOSE)
            hdr.ipv4.total_len = BARE_LENGTH;
        }
    }
}
