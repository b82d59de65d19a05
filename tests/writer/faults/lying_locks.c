/* Preloaded into a process: file locks that fail (LOCKS=none) or that promise what they do not hold (LOCKS=lie). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int fault(void)
{
    const char *kind = getenv("LOCKS");
    if (kind == NULL) return 0;
    return strcmp(kind, "none") == 0 ? 1 : 2;
}

static int faulty(void)
{
    if (fault() == 1) { errno = ENOLCK; return -1; }
    return 0;
}

static int takes_a_lock(int command)
{
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

#define FORWARD(name)                                                                   \
    int name(int descriptor, int command, ...)                                          \
    {                                                                                   \
        va_list rest;                                                                   \
        va_start(rest, command);                                                        \
        void *argument = va_arg(rest, void *);                                          \
        va_end(rest);                                                                   \
        if (fault() && takes_a_lock(command)) return faulty();                          \
        int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #name);   \
        return real(descriptor, command, argument);                                     \
    }

FORWARD(fcntl)
FORWARD(fcntl64)

int flock(int descriptor, int operation)
{
    if (fault()) return faulty();
    int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    return real(descriptor, operation);
}
