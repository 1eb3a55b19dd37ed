/* Copies and comparisons of memory for static x86-64 programs. musl's go byte by byte at both ends, which took
   a quarter of the processor's time when pages and streams were served; on arm64 musl has good ones.
   Nothing outside of the two ranges is read or written. tests/release/memory.py holds every length and overlap. */
#include <stddef.h>
#include <stdint.h>

typedef char block __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint16_t u16 __attribute__((aligned(1), may_alias));

#define AT(type, place) (*(type *)(place))
#define FROM(type, place) (*(const type *)(place))
#define STEP 64

/* All is read before anything is written, from both ends: ranges may overlap in any way. */
static void ends(char *to, const char *from, size_t n) {
    if (n >= 16) {
        block low = FROM(block, from), high = FROM(block, from + n - 16);
        AT(block, to) = low, AT(block, to + n - 16) = high;
    } else if (n >= 8) {
        uint64_t low = FROM(u64, from), high = FROM(u64, from + n - 8);
        AT(u64, to) = low, AT(u64, to + n - 8) = high;
    } else if (n >= 4) {
        uint32_t low = FROM(u32, from), high = FROM(u32, from + n - 4);
        AT(u32, to) = low, AT(u32, to + n - 4) = high;
    } else if (n >= 2) {
        uint16_t low = FROM(u16, from), high = FROM(u16, from + n - 2);
        AT(u16, to) = low, AT(u16, to + n - 2) = high;
    } else if (n == 1) {
        *to = *from;
    }
}

static void step(char *to, const char *from) {
    block a = FROM(block, from), b = FROM(block, from + 16), c = FROM(block, from + 32), d = FROM(block, from + 48);
    AT(block, to) = a, AT(block, to + 16) = b, AT(block, to + 32) = c, AT(block, to + 48) = d;
}

void *memmove(void *destination, const void *source, size_t n) {
    char *to = destination;
    const char *from = source;
    if (n <= 32) {
        ends(to, from, n);
        return destination;
    }
    /* The other end is read first and written last, so that steps need not divide the length. */
    size_t high = n > STEP ? n - STEP : 0;
    if (high == 0) {
        block a = FROM(block, from), b = FROM(block, from + 16), c = FROM(block, from + n - 32), d = FROM(block, from + n - 16);
        AT(block, to) = a, AT(block, to + 16) = b, AT(block, to + n - 32) = c, AT(block, to + n - 16) = d;
    } else if ((uintptr_t)to - (uintptr_t)from >= n) {
        const char *last = from + high;
        block a = FROM(block, last), b = FROM(block, last + 16), c = FROM(block, last + 32), d = FROM(block, last + 48);
        for (size_t at = 0; at < high; at += STEP) step(to + at, from + at);
        to += high;
        AT(block, to) = a, AT(block, to + 16) = b, AT(block, to + 32) = c, AT(block, to + 48) = d;
    } else {
        block a = FROM(block, from), b = FROM(block, from + 16), c = FROM(block, from + 32), d = FROM(block, from + 48);
        for (size_t left = n; left > STEP; left -= STEP) step(to + left - STEP, from + left - STEP);
        AT(block, to) = a, AT(block, to + 16) = b, AT(block, to + 32) = c, AT(block, to + 48) = d;
    }
    return destination;
}

void *memcpy(void *destination, const void *source, size_t n) __attribute__((alias("memmove")));

static int order(uint64_t one, uint64_t other) {
    return one < other ? -1 : one > other;
}

int memcmp(const void *first, const void *second, size_t n) {
    const char *one = first, *other = second;
    size_t at = 0;
    if (n >= 16) {
        for (;;) {
            block same = FROM(block, one + at) == FROM(block, other + at);
            unsigned differ = 0xFFFF ^ (unsigned)__builtin_ia32_pmovmskb128(same);
            if (differ) {
                at += (size_t)__builtin_ctz(differ);
                return (unsigned char)one[at] - (unsigned char)other[at];
            }
            if (at == n - 16) return 0;
            at = at + 32 <= n ? at + 16 : n - 16;
        }
    }
    if (n >= 8) {
        uint64_t a = FROM(u64, one), b = FROM(u64, other);
        if (a == b) a = FROM(u64, one + n - 8), b = FROM(u64, other + n - 8);
        return order(__builtin_bswap64(a), __builtin_bswap64(b));
    }
    if (n >= 4) {
        uint32_t a = FROM(u32, one), b = FROM(u32, other);
        if (a == b) a = FROM(u32, one + n - 4), b = FROM(u32, other + n - 4);
        return order(__builtin_bswap32(a), __builtin_bswap32(b));
    }
    for (; at < n; at++)
        if (one[at] != other[at]) return (unsigned char)one[at] - (unsigned char)other[at];
    return 0;
}

int bcmp(const void *first, const void *second, size_t n) __attribute__((alias("memcmp")));
