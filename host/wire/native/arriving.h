// Sends frames in one step; waits for frames and receives them in one step. Over UDP what has left as
// one message may arrive as one (UDP_GRO), and is cut here.
#pragma once

#include "frames.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

static const int LEVEL_UDP = 17, SEGMENT_SIZE = 104;
static const u32 MOST_MESSAGES = 64;

struct Receiving : ReceivingFields {
    void add(u64 begin, u64 size) {
        if (count == most) return;
        begins[count] = (u32)begin;
        sizes[count++] = (u32)size;
        bytes += size;
    }
    void cut(u64 begin, u64 size, u64 segment) {
        if (segment == 0 || segment >= size) return add(begin, size);
        for (u64 at = 0; at < size; at += segment) add(begin + at, size - at < segment ? size - at : segment);
    }
    int receive(int fd) {
        mmsghdr headers[MOST_MESSAGES];
        iovec vectors[MOST_MESSAGES];
        alignas(8) u8 control[MOST_MESSAGES][CMSG_SPACE(sizeof(int))];
        for (u32 i = 0; i < messages; i++) {
            vectors[i] = {room + i * message_bytes, message_bytes};
            headers[i] = {};
            headers[i].msg_hdr.msg_iov = &vectors[i];
            headers[i].msg_hdr.msg_iovlen = 1;
            headers[i].msg_hdr.msg_control = control[i];
            headers[i].msg_hdr.msg_controllen = sizeof control[i];
        }
        const int come = recvmmsg(fd, headers, messages, MSG_DONTWAIT, nullptr);
        if (come < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
        for (int i = 0; i < come; i++) cut(i * message_bytes, headers[i].msg_len, segment_of(headers[i].msg_hdr));
        return come;
    }
    static u64 segment_of(const msghdr& message) {
        const cmsghdr* c = CMSG_FIRSTHDR(&message);
        if (!c || c->cmsg_level != LEVEL_UDP || c->cmsg_type != SEGMENT_SIZE) return 0;
        int size;
        memcpy(&size, CMSG_DATA(c), sizeof size);
        return size > 0 ? (u64)size : 0;
    }
};

// 0, or the number of an error, EINTR among them: nothing has come, or it has.
extern "C" int receive_frames(Receiving* receiving, int fd, i64 nanoseconds) {
    receiving->count = 0;
    receiving->bytes = 0;
    if (nanoseconds > 0) {
        // Who waits has most often taken all that was there.
        pollfd one = {fd, POLLIN, 0};
        const timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
        const int ready = ppoll(&one, 1, &time, nullptr);
        if (ready <= 0) return ready ? errno : 0;
    }
    const int come = receiving->receive(fd);
    return come < 0 ? -come : 0;
}

// How many frames have left, or minus the number of an error.
extern "C" int send_frames(int fd, u8* frames, u64 frame_bytes, const u32* sizes, u32 first, u32 count) {
    mmsghdr headers[MOST_MESSAGES] = {};
    iovec vectors[MOST_MESSAGES];
    if (count > MOST_MESSAGES) count = MOST_MESSAGES;
    for (u32 i = 0; i < count; i++) {
        vectors[i] = {frames + (first + i) * frame_bytes, sizes ? sizes[first + i] : frame_bytes};
        headers[i].msg_hdr.msg_iov = &vectors[i];
        headers[i].msg_hdr.msg_iovlen = 1;
    }
    const int sent = sendmmsg(fd, headers, count, 0);
    return sent < 0 ? -errno : sent;
}
