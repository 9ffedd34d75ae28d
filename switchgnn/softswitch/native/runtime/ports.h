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
constexpr int LEVEL_UDP = 17, UDP_SEGMENT_SIZE = 103, UDP_WHOLE = 104;
constexpr size_t MOST_SEGMENTS = 64, LONGEST_MESSAGE = 65000;
constexpr u32 TAG_VALID = 1 << 4, TAG_PROTOCOL_VALID = 1 << 6;

// What a message may say beside the frame.
enum Beside { NOTHING, TAGS, SEGMENTS };

// One call's messages.
struct Arrivals {
    std::vector<u8> room;
    mmsghdr headers[BATCH];
    iovec places[BATCH];
    alignas(8) u8 aux[BATCH][CMSG_SPACE(sizeof(AuxData))];

    Arrivals() : room(BATCH * FRAME_ROOM) {}

    // Four bytes are left free in front of each frame, for a VLAN tag.
    u8* frame(int i) { return room.data() + (size_t)i * FRAME_ROOM + 4; }

    int receive(int fd, size_t frame_bytes, Beside beside) {
        for (int i = 0; i < BATCH; i++) {
            places[i] = {frame(i), beside == SEGMENTS ? FRAME_ROOM - 4 : frame_bytes};
            headers[i] = {};
            headers[i].msg_hdr.msg_iov = &places[i];
            headers[i].msg_hdr.msg_iovlen = 1;
            if (beside) {
                headers[i].msg_hdr.msg_control = aux[i];
                headers[i].msg_hdr.msg_controllen = sizeof aux[i];
            }
        }
        return recvmmsg(fd, headers, BATCH, MSG_DONTWAIT, nullptr);
    }

    // The length of the frames that have come as one message: but for the last all have it.
    size_t segment(int i) {
        const size_t length = headers[i].msg_len;
        const cmsghdr* c = CMSG_FIRSTHDR(&headers[i].msg_hdr);
        if (!c || c->cmsg_level != LEVEL_UDP || c->cmsg_type != UDP_WHOLE) return length;
        int size;
        memcpy(&size, CMSG_DATA(c), sizeof size);
        return size > 0 && (size_t)size < length ? (size_t)size : length;
    }

    // The kernel takes a VLAN tag out of the frame and gives it beside; here it comes back.
    u8* whole(int i, size_t& length) {
        u8* at = frame(i);
        length = headers[i].msg_len;
        const cmsghdr* c = CMSG_FIRSTHDR(&headers[i].msg_hdr);
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
    bool cuts = false;         // whether the kernel may cut messages into frames

    size_t waiting() const { return ends.size() - first; }
    void add(const u8* frame, size_t length) {
        const size_t end = ends.empty() ? 0 : ends.back();
        if (room.size() < end + length) room.resize((end + length) * 2);
        memcpy(room.data() + end, frame, length);
        ends.push_back(end + length);
    }
    size_t begin(size_t i) const { return i ? ends[i - 1] : 0; }
    size_t size(size_t i) const { return ends[i] - begin(i); }

    // How many frames from one on leave as one message, which the kernel cuts into datagrams: they
    // have one length, but the last may be shorter.
    size_t run(size_t from, size_t end) const {
        size_t to = from + 1;
        if (!cuts || size(from) == 0) return 1;
        while (to < end && to - from < MOST_SEGMENTS && size(to) == size(from)) to++;
        if (to < end && to - from < MOST_SEGMENTS && size(to) && size(to) < size(from)) to++;
        while (ends[to - 1] - begin(from) > LONGEST_MESSAGE && to > from + 1) to--;
        return to - from;
    }

    // Send until nothing waits (true) or the port takes no more (false).
    bool send(int fd, u64& sent, u64& errors) {
        mmsghdr headers[BATCH];
        iovec places[BATCH];
        size_t runs[BATCH];
        alignas(8) u8 segments[BATCH][CMSG_SPACE(sizeof(u16))];
        while (waiting()) {
            const size_t end = first + (waiting() < BATCH ? waiting() : BATCH);
            unsigned count = 0;
            for (size_t i = first; i < end; i += runs[count++]) {
                runs[count] = run(i, end);
                places[count] = {room.data() + begin(i), ends[i + runs[count] - 1] - begin(i)};
                headers[count] = {};
                headers[count].msg_hdr.msg_iov = &places[count];
                headers[count].msg_hdr.msg_iovlen = 1;
                if (runs[count] > 1) cut(headers[count].msg_hdr, segments[count], (u16)size(i));
            }
            const int done = sendmmsg(fd, headers, count, MSG_DONTWAIT);
            if (done > 0) {
                for (int i = 0; i < done; i++) sent += runs[i], first += runs[i];
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                return false;
            } else if (runs[0] > 1 && cannot_cut()) {
                cuts = false;
            } else if (errno != EINTR) {
                errors++;
                first++;
            }
        }
        ends.clear();
        first = 0;
        return true;
    }
    // https://man7.org/linux/man-pages/man7/udp.7.html (UDP_SEGMENT)
    static void cut(msghdr& message, u8* room, u16 size) {
        message.msg_control = room;
        message.msg_controllen = CMSG_SPACE(sizeof size);
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = LEVEL_UDP;
        c->cmsg_type = UDP_SEGMENT_SIZE;
        c->cmsg_len = CMSG_LEN(sizeof size);
        memcpy(CMSG_DATA(c), &size, sizeof size);
    }
    // Others take no notice of the wish, and would send it all as one.
    static bool is_udp(int fd) {
        int protocol = 0;
        socklen_t size = sizeof protocol;
        return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == LEVEL_UDP;
    }
    static bool cannot_cut() {
        return errno == EINVAL || errno == EIO || errno == EMSGSIZE || errno == ENOPROTOOPT || errno == EOPNOTSUPP;
    }
};

// Have messages that left as one arrive as one, where the kernel can:
// https://man7.org/linux/man-pages/man7/udp.7.html (UDP_GRO)
static inline bool arrive_whole(int fd) {
    const int on = 1;
    return Departures::is_udp(fd) && setsockopt(fd, LEVEL_UDP, UDP_WHOLE, &on, sizeof on) == 0;
}

struct Port {
    PortKind kind = NONE;
    Beside beside = NOTHING;
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
