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
#define WITH(n) \
    action have##n() { \
        FIRST_##n(HAVE) \
        hdr.ipv4.total_len = BARE_LENGTH + 32 * n; \
        hdr.switchgnn.bits = BITS_32; \
    }
#define OF_WIDTH(n) n - 1: have##n();

control Body(inout headers_t hdr, in metadata_t meta) {
    EACH_NUMBER(WITH)

    table body {
        key = { hdr.switchgnn.width: exact; }
        actions = { have1; have2; have3; have4; have5; have6; have7; have8; NoAction; }
        const default_action = NoAction;
        SIZE(8)
        const entries = { EACH_NUMBER(OF_WIDTH) }
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
