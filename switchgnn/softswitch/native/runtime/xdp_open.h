// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Attaches an AF_XDP socket to an interface, by system calls alone. All of it ends with its file
// descriptors, and so with the process, however that ends.
#pragma once

#include "xdp.h"

#include <cstdio>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// linux/if_xdp.h and linux/bpf.h: these numbers never change, but older headers lack some.
namespace xdp {
constexpr int FAMILY = 44, LEVEL = 283;
enum Option { OFFSETS = 1, RECEIVE_RING = 2, SEND_RING = 3, MEMORY = 4, FILL_RING = 5, COMPLETION_RING = 6 };
constexpr u64 RECEIVE_AT = 0, SEND_AT = 0x80000000ull, FILL_AT = 0x100000000ull, COMPLETION_AT = 0x180000000ull;
constexpr u16 COPY = 1 << 1;
enum Command { MAP_CREATE = 0, MAP_UPDATE = 2, PROGRAM_LOAD = 5, LINK_CREATE = 28 };
constexpr u32 MAP_OF_SOCKETS = 17, PROGRAM_KIND = 6, ATTACH_POINT = 37, IN_DRIVER = 1 << 2, PASS = 2;

struct Address { u16 family, flags; u32 interface, queue, shared; };
struct Memory { u64 address, length; u32 chunk, headroom, flags, metadata; };
struct RingOffsets { u64 producer, consumer, slots, flags; };
struct Offsets { RingOffsets receive, send, fill, completion; };

struct Instruction { u8 code, registers; short offset; i32 value; };
union Attributes {
    struct { u32 kind, key_bytes, value_bytes, entries, flags; } map;
    struct { u32 map, unused; u64 key, value, flags; } update;
    struct {
        u32 kind, count;
        u64 instructions, licence;
        u32 log_level, log_bytes;
        u64 log;
        u32 kernel, flags;
        char name[16];
        u32 interface, attach_point;
    } program;
    struct { u32 program, interface, attach_point, flags; } link;
    u8 room[128];
};

inline int bpf(Command command, Attributes& attributes) {
    return (int)syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

// Frames of a queue go to the socket that the map has for it; without one, on to the kernel.
inline int load_program(int map) {
    const Instruction code[] = {
        {0x61, 0x12, 16, 0},             // r2 = context->rx_queue_index
        {0x18, 0x11, 0, map}, {0, 0, 0, 0},  // r1 = map
        {0xb7, 0x03, 0, (i32)PASS},      // r3 = PASS
        {0x85, 0x00, 0, 51},             // r0 = redirect_map(r1, r2, r3)
        {0x95, 0x00, 0, 0},              // return r0
    };
    Attributes attributes = {};
    attributes.program.kind = PROGRAM_KIND;
    attributes.program.count = sizeof code / sizeof *code;
    attributes.program.instructions = (u64)code;
    attributes.program.licence = (u64) "Apache-2.0";
    attributes.program.attach_point = ATTACH_POINT;
    return bpf(PROGRAM_LOAD, attributes);
}

template <class Slot>
bool map_ring(int fd, u64 at, const RingOffsets& offsets, u32 size, XdpRing<Slot>& ring) {
    const size_t bytes = offsets.slots + size * sizeof(Slot);
    u8* start = (u8*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)at);
    if (start == MAP_FAILED) return false;
    ring.producer = (u32*)(start + offsets.producer);
    ring.consumer = (u32*)(start + offsets.consumer);
    ring.slots = (Slot*)(start + offsets.slots);
    ring.size = size;
    return true;
}

// Null, or what the kernel has refused, in words; errno says why.
inline const char* open(Xdp& port, u32 interface, size_t mtu, size_t headroom) {
    port.interface = interface;
    port.longest = mtu + Xdp::SHORTEST;
    const size_t frame_bytes = port.longest + Xdp::TAG;
    port.chunk = frame_bytes + headroom <= 2048 ? 2048 : 4096;
    const u32 places = Xdp::ARRIVALS + Xdp::DEPARTURES;
    const int option_sizes[] = {Xdp::ARRIVALS, Xdp::DEPARTURES};
    port.fd = socket(FAMILY, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (port.fd < 0) return "an AF_XDP socket";

    port.memory_bytes = places * port.chunk;
    // A page more: programs may look a few bytes beyond the end of a frame.
    port.memory = (u8*)mmap(nullptr, port.memory_bytes + 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (port.memory == MAP_FAILED) {
        port.memory = nullptr;
        return "memory for frames";
    }
    const Memory memory = {(u64)port.memory, port.memory_bytes, (u32)port.chunk, 0, 0, 0};
    // Older kernels know a shorter structure, and refuse nothing behind it.
    if (setsockopt(port.fd, LEVEL, MEMORY, &memory, sizeof memory) < 0 &&
        setsockopt(port.fd, LEVEL, MEMORY, &memory, sizeof memory - 8) < 0)
        return "to share memory (limit: ulimit -l)";
    const struct { Option ring; int size; } rings[] = {{FILL_RING, option_sizes[0]},
                                                       {COMPLETION_RING, option_sizes[1]},
                                                       {RECEIVE_RING, option_sizes[0]},
                                                       {SEND_RING, option_sizes[1]}};
    for (const auto& each : rings)
        if (setsockopt(port.fd, LEVEL, each.ring, &each.size, sizeof each.size) < 0) return "rings";
    Offsets offsets = {};
    socklen_t length = sizeof offsets;
    if (getsockopt(port.fd, LEVEL, OFFSETS, &offsets, &length) < 0 || length != sizeof offsets) return "its rings";
    if (!map_ring(port.fd, RECEIVE_AT, offsets.receive, Xdp::ARRIVALS, port.arrivals) ||
        !map_ring(port.fd, SEND_AT, offsets.send, Xdp::DEPARTURES, port.departures) ||
        !map_ring(port.fd, FILL_AT, offsets.fill, Xdp::ARRIVALS, port.empty) ||
        !map_ring(port.fd, COMPLETION_AT, offsets.completion, Xdp::DEPARTURES, port.done))
        return "to share its rings";
    for (u32 i = 0; i < Xdp::ARRIVALS; i++) port.empty[i] = i * port.chunk;
    port.empty.tell(port.empty.producer, Xdp::ARRIVALS);
    for (u32 i = Xdp::ARRIVALS; i < places; i++) port.spare.push_back(i * port.chunk);

    const Address address = {FAMILY, COPY, interface, 0, 0};
    if (bind(port.fd, (const sockaddr*)&address, sizeof address) < 0) return "to attach the socket to its queue";

    Attributes attributes = {};
    attributes.map = {MAP_OF_SOCKETS, 4, 4, 1, 0};
    port.map = bpf(MAP_CREATE, attributes);
    if (port.map < 0) return "a map of sockets (CONFIG_XDP_SOCKETS)";
    const u32 queue = 0;
    attributes = {};
    attributes.update = {(u32)port.map, 0, (u64)&queue, (u64)&port.fd, 0};
    if (bpf(MAP_UPDATE, attributes) < 0) return "the socket in a map";
    port.program = load_program(port.map);
    if (port.program < 0) return "a program for frames";
    attributes = {};
    attributes.link = {(u32)port.program, interface, ATTACH_POINT, IN_DRIVER};
    port.link = bpf(LINK_CREATE, attributes);
    return port.link < 0 ? "to attach a program to its driver" : nullptr;
}

template <class Slot> void unmap_ring(XdpRing<Slot>& ring) {
    if (!ring.slots) return;
    u8* first = (u8*)((size_t)ring.producer & ~(size_t)4095);
    munmap(first, (size_t)((u8*)(ring.slots + ring.size) - first));
}

inline void close(Xdp& port) {
    for (const int fd : {port.link, port.program, port.map, port.fd})
        if (fd >= 0) ::close(fd);
    unmap_ring(port.arrivals);
    unmap_ring(port.departures);
    unmap_ring(port.empty);
    unmap_ring(port.done);
    if (port.memory) munmap(port.memory, port.memory_bytes + 4096);
}
}  // namespace xdp

// What Python calls; native/xdp.py has the same signatures.
extern "C" {
// Null where the kernel refuses: then `why` says what, and `number` is errno.
Xdp* xdp_open(u32 interface, u64 mtu, u64 headroom, char* why, u64 room, int* number) {
    Xdp* port = new Xdp;
    if (const char* refused = xdp::open(*port, interface, mtu, headroom)) {
        *number = errno;
        snprintf(why, room, "%s", refused);
        xdp::close(*port);
        delete port;
        return nullptr;
    }
    return port;
}
void xdp_close(Xdp* port) {
    xdp::close(*port);
    delete port;
}
int xdp_descriptor(Xdp* port) { return port->fd; }
// The length of the next frame; -1: none has come.
i64 xdp_receive(Xdp* port, u8* room, u64 size) {
    if (!port->arrived(1)) return -1;
    size_t length;
    const u8* frame = port->arrival(0, length);
    memcpy(room, frame, length < size ? length : size);
    port->taken(1);
    return (i64)length;
}
// 1: the frame has left, 0: it is lost, -1: it was not taken, nor were earlier ones.
int xdp_send(Xdp* port, const u8* frame, u64 length) {
    u64 sent = 0, errors = 0;
    if (port->waiting() && !port->send(sent, errors)) return -1;
    if (!port->add(frame, length)) return 0;
    sent = errors = 0;
    // What the interface does not take now leaves with the next one.
    return port->send(sent, errors) ? sent > 0 : 1;
}
}
