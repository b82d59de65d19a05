/* Faults of a disk, for processes that load this library before the C library (LD_PRELOAD).

   FAULT_SLOW_MS=n      writing to and syncing a file named *.sqlite-wal takes n milliseconds longer, each time
   FAULT_SLOW_FILE=f    the same, n stands in the file f now; f.busy comes to be when somebody waits
   FAULT_LOCKS=lie      every lock is granted and keeps nobody out
   FAULT_LOCKS=perhost  flock is granted and keeps nobody out, but a process that is started to try it on this very
                        machine is refused: what two machines see of a disk whose locks do not travel
                        (SQLite's own locks work: with lying ones it cuts the file that the other has mapped)
   FAULT_LOCKS=none     the disk has no locks */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

typedef int (*fcntl_type)(int, int, ...);
typedef int (*flock_type)(int, int);
typedef int (*sync_type)(int);
typedef ssize_t (*write_type)(int, const void *, size_t, off_t);
typedef ssize_t (*write64_type)(int, const void *, size_t, off64_t);

static int is_trial(void) {
    char line[4096];
    int file = open("/proc/self/cmdline", O_RDONLY);
    ssize_t length = file < 0 ? 0 : read(file, line, sizeof line - 1);
    if (file >= 0) close(file);
    if (length <= 0) return 0;
    return memmem(line, (size_t)length, "\0-c\0", 4) != NULL;
}

/* 0: ask the system; 1: granted; -1: refused, errno set */
static int answer(int is_flock) {
    const char *wanted = getenv("FAULT_LOCKS");
    if (!wanted) return 0;
    if (!strcmp(wanted, "none")) { errno = ENOLCK; return -1; }
    if (!strcmp(wanted, "lie")) return 1;
    if (!is_flock) return 0;
    if (is_trial()) { errno = EWOULDBLOCK; return -1; }
    return 1;
}

static int is_lock(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

static int controlled(const char *name, int descriptor, int command, void *argument) {
    if (is_lock(command)) {
        int said = answer(0);
        if (said) return said > 0 ? 0 : -1;
    }
    return ((fcntl_type)dlsym(RTLD_NEXT, name))(descriptor, command, argument);
}

int fcntl(int descriptor, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return controlled("fcntl", descriptor, command, argument);
}

int fcntl64(int descriptor, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return controlled("fcntl64", descriptor, command, argument);
}

int flock(int descriptor, int operation) {
    int said = answer(1);
    if (said) return said > 0 ? 0 : -1;
    return ((flock_type)dlsym(RTLD_NEXT, "flock"))(descriptor, operation);
}

static long slowness(const char *control) {
    char text[32] = {0};
    if (!control) {
        const char *wanted = getenv("FAULT_SLOW_MS");
        return wanted ? atol(wanted) : 0;
    }
    int file = open(control, O_RDONLY);
    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
    return atol(text);
}

static void delay(int descriptor) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length <= 0) return;
    name[length] = 0;
    if (!strstr(name, ".sqlite-wal")) return;
    const char *control = getenv("FAULT_SLOW_FILE");
    long milliseconds = slowness(control);
    if (milliseconds <= 0) return;
    if (control) {
        snprintf(name, sizeof name, "%s.busy", control);
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    struct timespec pause = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    nanosleep(&pause, NULL);
}

int fsync(int descriptor) {
    delay(descriptor);
    return ((sync_type)dlsym(RTLD_NEXT, "fsync"))(descriptor);
}

int fdatasync(int descriptor) {
    delay(descriptor);
    return ((sync_type)dlsym(RTLD_NEXT, "fdatasync"))(descriptor);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t at) {
    delay(descriptor);
    return ((write_type)dlsym(RTLD_NEXT, "pwrite"))(descriptor, bytes, count, at);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t at) {
    delay(descriptor);
    return ((write64_type)dlsym(RTLD_NEXT, "pwrite64"))(descriptor, bytes, count, at);
}
