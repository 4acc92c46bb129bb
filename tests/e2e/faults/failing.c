/* Makes the k-th write below a folder fail, as a full or a broken disk does. Loaded before the C library.
 *
 * What fails stands in a file that $FAILING names, mapped by every process that inherits it: they count together.
 * arm(folder, k, error): the k-th write from now on, counted from 1, fails with `error`. k = 0 only counts.
 * k < 0: the -k-th fails and all that come after it.
 * writes(): how many there were.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct plan {
    char folder[PATH_MAX];
    long wanted, error, count;
};
static struct plan idle, *plan = &idle;

__attribute__((constructor)) static void shared(void) {
    const char *path = getenv("FAILING");
    int fd = path ? REAL(open)(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *found = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (found != MAP_FAILED) plan = found;
    close(fd);
}

void arm(const char *path, long k, long error) {
    snprintf(plan->folder, sizeof plan->folder, "%s", path);
    plan->wanted = k, plan->error = error, plan->count = 0;
}

long writes(void) { return plan->count; }

static int fails(void) {
    long now = __sync_add_and_fetch(&plan->count, 1);
    long wanted = plan->wanted;
    if (wanted >= 0 ? now != wanted : now < -wanted) return 0;
    errno = (int)plan->error;
    return 1;
}

static int below(const char *path) {
    char full[PATH_MAX];
    if (!plan->folder[0] || !path) return 0;
    if (path[0] == '/') return strncmp(path, plan->folder, strlen(plan->folder)) == 0;
    if (!getcwd(full, sizeof full)) return 0;
    return strncmp(full, plan->folder, strlen(plan->folder)) == 0;
}

static int leads_below(int fd) {
    char link[64], path[PATH_MAX];
    if (!plan->folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strncmp(path, plan->folder, strlen(plan->folder)) == 0;
}

#define ON_PATH(path, ...) if (below(path) && fails()) return -1; return __VA_ARGS__
#define ON_FILE(fd, ...) if (leads_below(fd) && fails()) return -1; return __VA_ARGS__

ssize_t write(int fd, const void *data, size_t n) { ON_FILE(fd, REAL(write)(fd, data, n)); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { ON_FILE(fd, REAL(pwrite)(fd, data, n, at)); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { ON_FILE(fd, REAL(pwrite64)(fd, data, n, at)); }
ssize_t writev(int fd, const struct iovec *parts, int n) { ON_FILE(fd, REAL(writev)(fd, parts, n)); }
int fsync(int fd) { ON_FILE(fd, REAL(fsync)(fd)); }
int fdatasync(int fd) { ON_FILE(fd, REAL(fdatasync)(fd)); }
int rename(const char *from, const char *to) { ON_PATH(to, REAL(rename)(from, to)); }
int renameat(int a, const char *from, int b, const char *to) { ON_PATH(to, REAL(renameat)(a, from, b, to)); }
int mkdir(const char *path, mode_t mode) { ON_PATH(path, REAL(mkdir)(path, mode)); }

/* Opening counts where it makes a file. */
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; va_end(more); \
        if (flags & O_CREAT && below(path) && fails()) return -1; \
        return REAL(name)(path, flags, mode); }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; va_end(more); \
        if (flags & O_CREAT && below(path) && fails()) return -1; \
        return REAL(name)(at, path, flags, mode); }
OPENS_AT(openat)
OPENS_AT(openat64)
