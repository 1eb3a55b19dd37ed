/* Loaded into the real binary: freezes the thread that makes the FREEZE_AT-th sync, for ever, after
 * FREEZE_MARK was made; 0 freezes nothing. After each sync that comes back, the store's file is
 * copied to FREEZE_DURABLE: what a power cut leaves for certain. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int syncs;

static void copy(int from, const char *path) {
    char part[65536];
    off_t at = 0;
    ssize_t got;
    int to = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    while (from >= 0 && (got = pread(from, part, sizeof part, at)) > 0) {
        if (write(to, part, (size_t)got) != got) abort();
        at += got;
    }
    close(to);
}

static int step(int fd, const char *name) {
    char link[64], path[4096] = "";
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (atomic_fetch_add(&syncs, 1) + 1 == atoi(getenv("FREEZE_AT"))) {
        copy(-1, getenv("FREEZE_MARK"));
        for (;;) pause();
    }
    int result = real(fd);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "trades.redb"))
        copy(fd, getenv("FREEZE_DURABLE"));
    return result;
}

int fsync(int fd) { return step(fd, "fsync"); }
int fdatasync(int fd) { return step(fd, "fdatasync"); }
