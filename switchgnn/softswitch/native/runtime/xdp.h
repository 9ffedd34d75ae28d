// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The rings of an AF_XDP socket in copy mode: frames in memory that the kernel shares, one system
// call for all that leave. https://docs.kernel.org/networking/af_xdp.html
#pragma once

#include "wide.h"

#include <cerrno>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

// linux/if_xdp.h, struct xdp_desc.
struct XdpFrame {
    u64 address;
    u32 length, options;
};

// One side writes a ring, the other reads it; each owns one of the two counters.
template <class Slot> struct XdpRing {
    u32 *producer = nullptr, *consumer = nullptr;
    Slot* slots = nullptr;
    u32 size = 0;

    Slot& operator[](u32 place) { return slots[place & (size - 1)]; }
    static u32 seen(const u32* counter) { return __atomic_load_n(counter, __ATOMIC_ACQUIRE); }
    static void tell(u32* counter, u32 value) { __atomic_store_n(counter, value, __ATOMIC_RELEASE); }
};

struct Xdp {
    static constexpr u32 ARRIVALS = 2048, DEPARTURES = 512;
    static constexpr size_t SHORTEST = 14, TAG = 4;  // an Ethernet header, and a VLAN tag in it

    int fd = -1, map = -1, program = -1, link = -1;
    size_t chunk = 0;  // bytes of a place for a frame
    size_t longest = 0;  // of a frame without a tag
    u8* memory = nullptr;
    size_t memory_bytes = 0;
    XdpRing<XdpFrame> arrivals, departures;
    XdpRing<u64> empty, done;
    std::vector<u64> spare;  // places for frames that leave
    // Frames that were given up when the interface went down are in the ring up to here.
    u32 dead = 0;
    bool down = false;
    u32 interface = 0;

    u64 place(u64 address) const { return address & ~(u64)(chunk - 1); }

    u32 arrived(u32 most) const {
        const u32 count = arrivals.seen(arrivals.producer) - *arrivals.consumer;
        return count < most ? count : most;
    }
    const u8* arrival(u32 i, size_t& length) {
        const XdpFrame& frame = arrivals[*arrivals.consumer + i];
        length = frame.length;
        return memory + frame.address;
    }
    // The kernel may use the places of so many frames again.
    void taken(u32 count) {
        const u32 from = *arrivals.consumer, to = *empty.producer;
        for (u32 i = 0; i < count; i++) empty[to + i] = place(arrivals[from + i].address);
        arrivals.tell(arrivals.consumer, from + count);
        empty.tell(empty.producer, to + count);
    }

    // Those that have not left.
    u32 waiting() const {
        const u32 from = departures.seen(departures.consumer), to = *departures.producer;
        return (i32)(dead - from) > 0 ? to - dead : to - from;
    }
    bool full() const { return *departures.producer - departures.seen(departures.consumer) == DEPARTURES; }
    int kick() { return sendto(fd, nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0 ? errno : 0; }
    void reclaim() {
        const u32 from = *done.consumer, to = done.seen(done.producer);
        for (u32 i = from; i != to; i++) spare.push_back(place(done[i]));
        done.tell(done.consumer, to);
    }

    static bool tagged(const u8* frame) { return frame[12] == 0x81 && frame[13] == 0; }

    // False: the frame is lost.
    bool add(const u8* frame, size_t length) {
        // What a packet socket refuses, too; the other end would drop it, and nobody would know.
        if (length < SHORTEST || length > longest + (tagged(frame) ? TAG : 0)) return false;
        if (down && !is_up()) return false;
        down = false;
        if (spare.empty()) reclaim();
        if (spare.empty() || full()) return false;
        const u64 address = spare.back();
        spare.pop_back();
        memcpy(memory + address, frame, length);
        const u32 to = *departures.producer;
        departures[to] = {address, (u32)length, 0};
        departures.tell(departures.producer, to + 1);
        return true;
    }
    // Send until nothing waits (true) or the interface takes no more (false).
    bool send(u64& sent, u64& errors) {
        u32 refused = 0, lost = 0;
        while (const u32 before = waiting()) {
            const u32 from = departures.seen(departures.consumer);
            const int error = kick();
            // The kernel has dropped one frame, as of an interface whose other end is down.
            if (error == EBUSY) lost++;
            if (departures.seen(departures.consumer) != from) {
                const u32 gone = before - waiting(), dropped = lost < gone ? lost : gone;
                errors += dropped;
                sent += gone - dropped;
                lost -= dropped;
                refused = 0;
            } else if (error == EAGAIN || error == EBUSY || error == ENOBUFS || error == EINTR || !error) {
                // It tells of what it has taken when it has seen the end of the ring, and older
                // kernels with the next call.
                if (++refused > (error == EBUSY ? DEPARTURES : 2)) return false;
            } else {
                errors += before;
                give_up();
            }
        }
        reclaim();
        return true;
    }
    // What is in the ring stays there, at most a batch: it is lost, or leaves when the interface is
    // up again. Nothing is put behind it until then.
    void give_up() {
        dead = *departures.producer;
        down = true;
    }
    bool is_up() const {
        ifreq request = {};
        request.ifr_ifindex = (int)interface;
        // AF_XDP sockets do not take these calls.
        const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const bool up = ioctl(any, SIOCGIFNAME, &request) == 0 && ioctl(any, SIOCGIFFLAGS, &request) == 0 &&
                        request.ifr_flags & IFF_UP;
        close(any);
        return up;
    }
};
