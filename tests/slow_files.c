/* Delay every file access, as on a network drive or a busy disk. Loaded before the C library.
 *
 * A delay is random, up to $SLOW_FILES microseconds (3,000); one in a hundred is ten times as long. Pipes, sockets and
 * terminals are as fast as ever.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static unsigned longest = 3000;

__attribute__((constructor)) static void asked(void) {
    const char *given = getenv("SLOW_FILES");
    if (given) longest = (unsigned)atoi(given);
}

static void delay(void) {
    static __thread unsigned state;
    int before = errno;
    if (!state) state = (unsigned)getpid() ^ (unsigned)(size_t)&state ^ (unsigned)time(NULL);
    unsigned drawn = (unsigned)rand_r(&state), wait = drawn % (longest + 1) * (drawn % 100 ? 1 : 10);
    struct timespec left = {wait / 1000000, wait % 1000000 * 1000L};
    while (nanosleep(&left, &left) && errno == EINTR) {}
    errno = before;
}

static int is_file(int fd) {
    struct stat found;
    int before = errno, yes = fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
    errno = before;
    return yes;
}

#define ON_PATH(...) delay(); return __VA_ARGS__
#define ON_FILE(fd, ...) if (is_file(fd)) delay(); return __VA_ARGS__

ssize_t read(int fd, void *data, size_t n) { ON_FILE(fd, REAL(read)(fd, data, n)); }
ssize_t pread(int fd, void *data, size_t n, off_t at) { ON_FILE(fd, REAL(pread)(fd, data, n, at)); }
ssize_t write(int fd, const void *data, size_t n) { ON_FILE(fd, REAL(write)(fd, data, n)); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { ON_FILE(fd, REAL(pwrite)(fd, data, n, at)); }
ssize_t writev(int fd, const struct iovec *parts, int n) { ON_FILE(fd, REAL(writev)(fd, parts, n)); }
int fsync(int fd) { ON_FILE(fd, REAL(fsync)(fd)); }
int fdatasync(int fd) { ON_FILE(fd, REAL(fdatasync)(fd)); }
int rename(const char *from, const char *to) { ON_PATH(REAL(rename)(from, to)); }
int renameat(int a, const char *from, int b, const char *to) { ON_PATH(REAL(renameat)(a, from, b, to)); }
int unlink(const char *path) { ON_PATH(REAL(unlink)(path)); }
int mkdir(const char *path, mode_t mode) { ON_PATH(REAL(mkdir)(path, mode)); }

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; va_end(more); \
        ON_PATH(REAL(name)(path, flags, mode)); }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; va_end(more); \
        ON_PATH(REAL(name)(at, path, flags, mode)); }
OPENS_AT(openat)
OPENS_AT(openat64)
