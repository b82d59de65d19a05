/* Faults of a disk, for processes that load this library before the C library (LD_PRELOAD).

   FAULT_SYNC_MS=n      syncing a file named *.sqlite* takes n milliseconds longer, as on a real disk
   FAULT_LOCKS=lie      every lock is granted and keeps nobody out
   FAULT_LOCKS=perhost  the same, but a process that is started to try the lock from this very machine is refused:
                        what two machines see of a disk whose locks do not travel
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

static int is_trial(void) {
    char line[4096];
    int file = open("/proc/self/cmdline", O_RDONLY);
    ssize_t length = file < 0 ? 0 : read(file, line, sizeof line - 1);
    if (file >= 0) close(file);
    if (length <= 0) return 0;
    return memmem(line, (size_t)length, "\0-c\0", 4) != NULL;
}

/* 0: ask the system; 1: granted; -1: refused, errno set */
static int answer(int nonblocking) {
    const char *wanted = getenv("FAULT_LOCKS");
    if (!wanted) return 0;
    if (!strcmp(wanted, "none")) { errno = ENOLCK; return -1; }
    if (!strcmp(wanted, "perhost") && is_trial()) { errno = nonblocking ? EWOULDBLOCK : EINTR; return -1; }
    return 1;
}

static int is_lock(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

static int controlled(const char *name, int descriptor, int command, void *argument) {
    if (is_lock(command)) {
        int said = answer(1);
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

static void delay(int descriptor) {
    const char *wanted = getenv("FAULT_SYNC_MS");
    if (!wanted) return;
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length <= 0) return;
    name[length] = 0;
    if (!strstr(name, ".sqlite")) return;
    long milliseconds = atol(wanted);
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
