#!/usr/bin/env python3
"""docs/deploy/memory.c against plain loops: `python3 -B tests/release/memory.py`. Every length to 200 and some beyond, every overlap.

The ranges stand at the ends of pages next to ones that cannot be touched, so that a byte read or written outside ends the program.
"""
import pathlib, subprocess, sys, tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "docs/deploy/memory.c"
FLAGS = ["-O2", "-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-fno-stack-protector", "-fPIC"]
NAMES = ("memmove", "memcpy", "memcmp", "bcmp")
TRIAL = r"""
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
void *our_memmove(void *, const void *, size_t), *our_memcpy(void *, const void *, size_t);
int our_memcmp(const void *, const void *, size_t), our_bcmp(const void *, const void *, size_t);
enum { PAGE = 4096, ROOM = 8 * PAGE };
static unsigned char *room(void) {
    unsigned char *all = mmap(0, ROOM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mprotect(all + PAGE, ROOM, PROT_READ | PROT_WRITE)) abort();
    return all + PAGE;
}
static long cases;
static void fail(const char *what, size_t n, size_t to, size_t from) { printf("%s: %zu bytes, %zu from %zu\n", what, n, to, from); exit(1); }
static void fill(unsigned char *at, unsigned seed) { for (size_t i = 0; i < ROOM; i++) at[i] = (unsigned char)((i * 131 + seed) ^ (i >> 8)); }
static unsigned char *a, *b, *c;
static void moves(size_t n, size_t to, size_t from) {
    fill(a, 7); fill(b, 7);
    if (our_memmove(a + to, a + from, n) != a + to) fail("result", n, to, from);
    for (size_t i = 0; i < n; i++) c[i] = b[from + i];
    for (size_t i = 0; i < n; i++) b[to + i] = c[i];
    for (size_t i = 0; i < ROOM; i++) if (a[i] != b[i]) fail("memmove", n, to, from);
    cases++;
}
static int sign(int value) { return (value > 0) - (value < 0); }
static void compares(size_t n) {
    unsigned char *one = a + ROOM - n, *other = b + ROOM - n;
    fill(a, 7); fill(b, 7);
    if (our_memcmp(one, other, n) || our_bcmp(one, other, n)) fail("memcmp of equals", n, 0, 0);
    for (size_t i = 0; i < n; i++) for (int by = 0; by < 3; by++) {
        static const unsigned char one_is[] = { 0, 255, 127 }, other_is[] = { 255, 0, 128 };
        unsigned char kept = one[i];
        one[i] = one_is[by]; other[i] = other_is[by];
        /* What differs behind the first difference decides nothing. */
        if (i + 1 < n) one[n - 1] ^= 0x55;
        if (sign(our_memcmp(one, other, n)) != (one_is[by] < other_is[by] ? -1 : 1)) fail("memcmp", n, i, by);
        if (!our_bcmp(one, other, n)) fail("bcmp", n, i, by);
        if (i + 1 < n) one[n - 1] ^= 0x55;
        one[i] = other[i] = kept; cases++;
    }
}
int main(void) {
    a = room(); b = room(); c = room();
    static const size_t long_ones[] = { 255, 256, 257, 1000, 1023, 4095, 4096, 4097, 8191 };
    for (size_t at = 0; at < 201 + sizeof long_ones / sizeof *long_ones; at++) {
        size_t n = at <= 200 ? at : long_ones[at - 201];
        size_t near[] = { 0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, n / 2, n ? n - 1 : 0, n };
        for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
            size_t by = near[i];
            moves(n, 4096 - 1, 4096 - 1 + by); moves(n, 4096 - 1 + by, 4096 - 1);
            moves(n, ROOM - n, 0); moves(n, 0, ROOM - n);
        }
        compares(n);
        fill(a, 7); fill(b, 99);
        our_memcpy(a + ROOM - n, b + ROOM - n, n);
        for (size_t i = 0; i < n; i++) if (a[ROOM - n + i] != b[ROOM - n + i]) fail("memcpy", n, i, 0);
    }
    printf("copies and comparisons of memory: %ld cases as plain loops\n", cases);
    return 0;
}
"""


def main():
    with tempfile.TemporaryDirectory(prefix="blotter-memory-") as place:
        folder = pathlib.Path(place)
        (folder / "trial.c").write_text(TRIAL)
        renamed = [f"-D{name}=our_{name}" for name in NAMES]
        # The aliases name their targets as text.
        source = SOURCE.read_text()
        for name in NAMES:
            source = source.replace(f'alias("{name}")', f'alias("our_{name}")')
        (folder / "memory.c").write_text(source)
        subprocess.run(["cc", *FLAGS, *renamed, "-c", folder / "memory.c", "-o", folder / "memory.o"], check=True)
        subprocess.run(["cc", "-O1", "-fno-builtin", folder / "trial.c", folder / "memory.o", "-o", folder / "trial"], check=True)
        subprocess.run([folder / "trial"], check=True)


if __name__ == "__main__":
    main()
