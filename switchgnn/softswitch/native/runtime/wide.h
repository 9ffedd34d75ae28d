// Integers of N 64-bit words: u64, u128, or W<N>. Arithmetic is modulo 2^(64 N); the generator
// chooses types that are wide enough.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int32_t i32;
typedef long long i64;
typedef unsigned __int128 u128;
typedef __int128 i128;

// Four words, anywhere in memory. All wide numbers are read and written in these pieces: a processor
// passes a stored piece on to a load only if the load is not larger.
typedef u64 Words4 __attribute__((vector_size(32), aligned(1), may_alias));
typedef u8 Bytes32 __attribute__((vector_size(32), aligned(1), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define INLINE_MEMBER inline __attribute__((always_inline))

// Copies B bytes. Compilers copy structs of more than 64 bytes with `rep movs`, whose startup alone is
// slower than these vector moves.
template <int B> INLINE void copy_bytes(void* to, const void* from) {
    if constexpr (B % 32 == 0) {
#pragma GCC unroll 16
        for (int i = 0; i < B; i += 32) *(Words4*)((u8*)to + i) = *(const Words4*)((const u8*)from + i);
    } else {
        memcpy(to, from, B);
    }
}

// Words, the least significant first; negative numbers are two's complements.
template <int N> struct W {
    u64 w[N];

    W() = default;
    constexpr W(const u64 (&words)[N]) : w{} {
        for (int i = 0; i < N; i++) w[i] = words[i];
    }
    W(const W& other) { copy_bytes<8 * N>(w, other.w); }
    W& operator=(const W& other) {
        copy_bytes<8 * N>(w, other.w);
        return *this;
    }
    INLINE_MEMBER const W& get() const { return *this; }
};

static const u64 no_words[1 << 12] = {};

// A wide variable, which is 0 until it is set: most are not in most passes, and their zeros are neither
// written nor copied.
template <int N> struct Lazy {
    bool set = false;
    W<N> value;

    INLINE_MEMBER Lazy() {}
    INLINE_MEMBER Lazy(const Lazy& other) { *this = other; }
    INLINE_MEMBER Lazy& operator=(const Lazy& other) {
        set = other.set;
        if (set) value = other.value;
        return *this;
    }
    INLINE_MEMBER void operator=(const W<N>& number) {
        value = number;
        set = true;
    }
    INLINE_MEMBER const W<N>& get() const { return set ? value : *(const W<N>*)no_words; }
};

template <int N> using T = std::conditional_t<N == 1, u64, std::conditional_t<N == 2, u128, W<N>>>;

template <class X> constexpr int words_of = (sizeof(X) + 7) / 8;

template <class X> INLINE u64 word(const X& x, int i) {
    if constexpr (words_of<X> == 1) return (u64)x;
    else if constexpr (words_of<X> == 2) return (u64)((u128)x >> (64 * i));
    else return x.w[i];
}

// x modulo 2^(64 N), sign-extended if S.
template <int N, bool S, class X> INLINE T<N> ext(const X& x) {
    constexpr int M = words_of<X>;
    if constexpr (N == M && N > 2) {
        return x;
    } else if constexpr (N == 1) {
        return word(x, 0);
    } else if constexpr (N == 2) {
        if constexpr (M == 1) return S ? (u128)(i128)(i64)x : (u128)(u64)x;
        else return (u128)word(x, 0) | (u128)word(x, 1) << 64;
    } else {
        W<N> r;
        const u64 fill = S && (i64)word(x, M - 1) < 0 ? ~0ull : 0;
        for (int i = 0; i < N; i++) r.w[i] = i < M ? word(x, i < M ? i : 0) : fill;
        return r;
    }
}

INLINE u128 pair(u64 high, u64 low) { return (u128)high << 64 | low; }

// f of each word of both, or of four words at once.
template <int N, class F> INLINE W<N> by_words(const W<N>& a, const W<N>& b, const F& f) {
    W<N> r;
    if constexpr (N % 4 == 0) {
#pragma GCC unroll 16
        for (int i = 0; i < N; i += 4) *(Words4*)(r.w + i) = f(*(const Words4*)(a.w + i), *(const Words4*)(b.w + i));
    } else {
        for (int i = 0; i < N; i++) r.w[i] = f(a.w[i], b.w[i]);
    }
    return r;
}
template <int N> INLINE W<N> operator&(const W<N>& a, const W<N>& b) {
    return by_words(a, b, [](auto x, auto y) { return x & y; });
}
template <int N> INLINE W<N> operator|(const W<N>& a, const W<N>& b) {
    return by_words(a, b, [](auto x, auto y) { return x | y; });
}
template <int N> INLINE W<N> operator^(const W<N>& a, const W<N>& b) {
    return by_words(a, b, [](auto x, auto y) { return x ^ y; });
}
template <int N> INLINE W<N> operator~(const W<N>& a) {
    return by_words(a, a, [](auto x, auto) { return ~x; });
}
// a + b + carry.
template <int N> INLINE W<N> sum(const W<N>& a, const W<N>& b, u64 carry) {
    W<N> r;
    for (int i = 0; i < N; i++) {
        const u128 words = (u128)a.w[i] + b.w[i] + carry;
        r.w[i] = (u64)words;
        carry = (u64)(words >> 64);
    }
    return r;
}
template <int N> INLINE W<N> operator+(const W<N>& a, const W<N>& b) { return sum(a, b, 0); }
template <int N> INLINE W<N> operator-(const W<N>& a, const W<N>& b) { return sum(a, ~b, 1); }
// The sum of two numbers whose words have no carry between them: vector code.
template <int N> INLINE W<N> add_by_words(const W<N>& a, const W<N>& b) {
    return by_words(a, b, [](auto x, auto y) { return x + y; });
}
template <int N> static __attribute__((noinline)) W<N> operator*(const W<N>& a, const W<N>& b) {
    W<N> r = {};
    for (int i = 0; i < N; i++) {
        u64 carry = 0;
        for (int j = 0; i + j < N; j++) {
            const u128 sum = (u128)a.w[i] * b.w[j] + r.w[i + j] + carry;
            r.w[i + j] = (u64)sum;
            carry = (u64)(sum >> 64);
        }
    }
    return r;
}

// Whether any bit is one, from one of the words on.
template <class X> INLINE bool nonzero(const X& x, int from = 0) {
    u64 any = 0;
    for (int i = from; i < words_of<X>; i++) any |= word(x, i);
    return any != 0;
}
template <int N> INLINE bool operator==(const W<N>& a, const W<N>& b) { return !nonzero(a ^ b); }

// The distance of a shift; one that is too large for any number stays so.
template <class X> INLINE u64 distance(const X& x) { return nonzero(x, 1) ? ~0ull : word(x, 0); }

INLINE u64 shl(u64 a, u64 k) { return k < 64 ? a << k : 0; }
INLINE u128 shl(u128 a, u64 k) { return k < 128 ? a << k : 0; }
template <int N> INLINE W<N> shl(const W<N>& a, u64 k) {
    W<N> r;
    const u64 q = k / 64, s = k % 64;
    for (int i = 0; i < N; i++) {
        u64 value = (u64)i >= q ? a.w[i - q] << s : 0;
        if (s && (u64)i > q) value |= a.w[i - q - 1] >> (64 - s);
        r.w[i] = value;
    }
    return r;
}
INLINE u64 shr(u64 a, u64 k) { return k < 64 ? a >> k : 0; }
INLINE u128 shr(u128 a, u64 k) { return k < 128 ? a >> k : 0; }
template <int N> INLINE W<N> shifted_down(const W<N>& a, u64 k, u64 fill) {
    W<N> r;
    const u64 q = k / 64, s = k % 64;
    for (int i = 0; i < N; i++) {
        const u64 low = q < (u64)(N - i) ? a.w[i + q] : fill;
        const u64 high = q + 1 < (u64)(N - i) ? a.w[i + q + 1] : fill;
        r.w[i] = s ? low >> s | high << (64 - s) : low;
    }
    return r;
}
template <int N> INLINE W<N> shr(const W<N>& a, u64 k) { return shifted_down(a, k, 0); }
// The same, of a number whose words lose only zeros: vector code.
template <int N> INLINE W<N> shr_by_words(const W<N>& a, u64 k) {
    return by_words(a, a, [k](auto x, auto) { return x >> k; });
}
INLINE i64 sar(i64 a, u64 k) { return a >> (k < 63 ? k : 63); }
INLINE i128 sar(i128 a, u64 k) { return a >> (k < 127 ? k : 127); }
template <int N> INLINE W<N> sar(const W<N>& a, u64 k) {
    return shifted_down(a, k, (i64)a.w[N - 1] < 0 ? ~0ull : 0);
}

template <class X> INLINE bool is_negative(const X& x) { return (i64)word(x, words_of<X> - 1) < 0; }

// Whether a < b, both of one type; S: they are two's complements.
template <bool S> INLINE bool less(u64 a, u64 b) { return S ? (i64)a < (i64)b : a < b; }
template <bool S> INLINE bool less(u128 a, u128 b) { return S ? (i128)a < (i128)b : a < b; }
template <bool S, int N> INLINE bool less(const W<N>& a, const W<N>& b) {
    if (S && is_negative(a) != is_negative(b)) return is_negative(a);
    for (int i = N - 1; i >= 0; i--)
        if (a.w[i] != b.w[i]) return a.w[i] < b.w[i];
    return false;
}

// Quotient and remainder of unsigned numbers; a division by zero gives zero.
template <class X> INLINE X quotient(X a, X b) { return b ? a / b : 0; }
template <class X> INLINE X remainder(X a, X b) { return b ? a % b : 0; }

// Copies B bytes, a multiple of 32, from the last to the first.
template <int B> INLINE void reverse_bytes(void* to, const void* from) {
    const Bytes32 order = {31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
                           15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0};
#pragma GCC unroll 16
    for (int i = 0; i < B; i += 32)
        *(Bytes32*)((u8*)to + i) = __builtin_shuffle(*(const Bytes32*)((const u8*)from + B - 32 - i), order);
}

// Big-endian numbers of B bytes.
template <int B> INLINE T<(B + 7) / 8> load_wire(const u8* p) {
    constexpr int N = (B + 7) / 8, rest = B % 8;
    W<N> r;
    if constexpr (B % 32 == 0) {
        reverse_bytes<B>(r.w, p);
        return r;
    }
    for (int i = 0; i < B / 8; i++) {
        u64 x;
        memcpy(&x, p + B - 8 * (i + 1), 8);
        r.w[i] = __builtin_bswap64(x);
    }
    if constexpr (rest != 0) {
        u64 x = 0;
        for (int i = 0; i < rest; i++) x = x << 8 | p[i];
        r.w[N - 1] = x;
    }
    if constexpr (N == 1) return r.w[0];
    else if constexpr (N == 2) return pair(r.w[1], r.w[0]);
    else return r;
}
template <int B, class X> INLINE void store_wire(u8* p, const X& x) {
    constexpr int rest = B % 8;
    if constexpr (B % 32 == 0 && sizeof(X) == B) {
        reverse_bytes<B>(p, x.w);
        return;
    }
    for (int i = 0; i < B / 8; i++) {
        const u64 swapped = __builtin_bswap64(word(x, i));
        memcpy(p + B - 8 * (i + 1), &swapped, 8);
    }
    if constexpr (rest != 0) {
        u64 top = word(x, B / 8);
        for (int i = rest - 1; i >= 0; i--, top >>= 8) p[i] = (u8)top;
    }
}

// Numbers of B bytes in native byte order.
template <int B> INLINE T<(B + 7) / 8> load_here(const u8* p) {
    T<(B + 7) / 8> r;
    if constexpr (B % 8 != 0) r = {};
    copy_bytes<B>(&r, p);
    return r;
}
template <int B, class X> INLINE void store_here(u8* p, const X& x) { copy_bytes<B>(p, &x); }

template <int B> struct Raw {
    u8 bytes[B];
};
