// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Ports: sockets that Python has opened, whole batches of frames per system call.
#pragma once

#include "xdp.h"

#include <cerrno>
#include <deque>
#include <string>
#include <sys/socket.h>
#include <sys/uio.h>
#include <vector>

enum PortKind { NONE, SOCKET, PACKET_SOCKET, CONTROLLER, CAPTURED, XDP };

constexpr int BATCH = 32;
constexpr size_t FRAME_ROOM = 65536 + 64;

// What a packet socket says of a frame: linux/if_packet.h, struct tpacket_auxdata.
struct AuxData {
    u32 status, length, caught;
    u16 mac, net, tag, protocol;
};
constexpr int LEVEL_PACKET = 263, PACKET_AUX = 8;
constexpr u32 TAG_VALID = 1 << 4, TAG_PROTOCOL_VALID = 1 << 6;

// One call's frames.
struct Arrivals {
    std::vector<u8> room;
    mmsghdr headers[BATCH];
    iovec places[BATCH];
    alignas(8) u8 aux[BATCH][CMSG_SPACE(sizeof(AuxData))];

    Arrivals() : room(BATCH * FRAME_ROOM) {}

    // Four bytes are left free in front of each frame, for a VLAN tag.
    u8* frame(int i) { return room.data() + (size_t)i * FRAME_ROOM + 4; }

    int receive(int fd, size_t frame_bytes, bool tagged) {
        for (int i = 0; i < BATCH; i++) {
            places[i] = {frame(i), frame_bytes};
            headers[i] = {};
            headers[i].msg_hdr.msg_iov = &places[i];
            headers[i].msg_hdr.msg_iovlen = 1;
            if (tagged) {
                headers[i].msg_hdr.msg_control = aux[i];
                headers[i].msg_hdr.msg_controllen = sizeof aux[i];
            }
        }
        return recvmmsg(fd, headers, BATCH, MSG_DONTWAIT, nullptr);
    }

    // The kernel takes a VLAN tag out of the frame and gives it beside; here it comes back.
    u8* whole(int i, size_t& length, bool tagged) {
        u8* at = frame(i);
        length = headers[i].msg_len;
        const cmsghdr* c = tagged ? CMSG_FIRSTHDR(&headers[i].msg_hdr) : nullptr;
        if (!c || c->cmsg_level != LEVEL_PACKET || c->cmsg_type != PACKET_AUX || length < 12) return at;
        AuxData data;
        memcpy(&data, CMSG_DATA(c), sizeof data);
        if (!(data.status & TAG_VALID)) return at;
        const u16 protocol = data.status & TAG_PROTOCOL_VALID ? data.protocol : 0x8100;
        memmove(at - 4, at, 12);
        const u8 tag[4] = {(u8)(protocol >> 8), (u8)protocol, (u8)(data.tag >> 8), (u8)data.tag};
        memcpy(at + 8, tag, 4);
        length += 4;
        return at - 4;
    }
};

// The frames that leave a port with the next call.
struct Departures {
    std::vector<u8> room;
    std::vector<size_t> ends;  // of each frame in the room
    size_t first = 0;          // of those that have not left

    size_t waiting() const { return ends.size() - first; }
    void add(const u8* frame, size_t length) {
        const size_t end = ends.empty() ? 0 : ends.back();
        if (room.size() < end + length) room.resize((end + length) * 2);
        memcpy(room.data() + end, frame, length);
        ends.push_back(end + length);
    }
    size_t begin(size_t i) const { return i ? ends[i - 1] : 0; }

    // Send until nothing waits (true) or the port takes no more (false).
    bool send(int fd, u64& sent, u64& errors) {
        mmsghdr headers[BATCH];
        iovec places[BATCH];
        while (waiting()) {
            const int count = waiting() < BATCH ? (int)waiting() : BATCH;
            for (int i = 0; i < count; i++) {
                const size_t from = begin(first + (size_t)i);
                places[i] = {room.data() + from, ends[first + (size_t)i] - from};
                headers[i] = {};
                headers[i].msg_hdr.msg_iov = &places[i];
                headers[i].msg_hdr.msg_iovlen = 1;
            }
            const int done = sendmmsg(fd, headers, (unsigned)count, MSG_DONTWAIT);
            if (done > 0) {
                sent += (u64)done;
                first += (size_t)done;
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                return false;
            } else if (errno != EINTR) {
                errors++;
                first++;
            }
        }
        ends.clear();
        first = 0;
        return true;
    }
};

struct Port {
    PortKind kind = NONE;
    int fd = -1;
    size_t frame_bytes = 0;
    Departures departures;
    Xdp* xdp = nullptr;
    // One that may refuse a frame gets one at a time, so that frames wait in the queue whose depth
    // the program reads; so does for a while one that was not expected to, and has.
    bool may_refuse = false;
    int careful = 0;
    // The frames behind the first one that was refused, which count as queued.
    i64 behind = 0;
    size_t last_bytes = 0;
    bool held = false;
    bool watched = false;

    // False: the frame is lost.
    bool add(const u8* frame, size_t length) {
        if (xdp) return xdp->add(frame, length);
        departures.add(frame, length);
        return true;
    }
    size_t waiting() const { return xdp ? xdp->waiting() : departures.waiting(); }
    bool send(u64& sent, u64& errors) {
        return xdp ? xdp->send(sent, errors) : departures.send(fd, sent, errors);
    }
};
