/* Preloaded into the program under test: notes every address it connects or sends to in the file CONNECTIONS. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static void note(const struct sockaddr *to) {
    char host[INET6_ADDRSTRLEN] = "?";
    int port;
    if (to == NULL) return; /* sending on a socket that is connected, which was noted then */
    if (to->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)to;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        port = ntohs(v4->sin_port);
    } else if (to->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)to;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        port = ntohs(v6->sin6_port);
    } else {
        return; /* a socket of this machine, which is not a network */
    }
    FILE *file = fopen(getenv("CONNECTIONS"), "a");
    if (file == NULL) abort();
    fprintf(file, "%s:%d\n", host, port);
    fclose(file);
}

int connect(int socket, const struct sockaddr *to, socklen_t length) {
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    note(to);
    return real(socket, to, length);
}

ssize_t sendto(int socket, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "sendto");
    note(to);
    return real(socket, data, size, flags, to, length);
}

int getaddrinfo(const char *name, const char *service, const void *hints, void **result) {
    int (*real)(const char *, const char *, const void *, void **) = dlsym(RTLD_NEXT, "getaddrinfo");
    FILE *file = fopen(getenv("CONNECTIONS"), "a");
    if (file == NULL) abort();
    fprintf(file, "lookup of %s\n", name == NULL ? "nothing" : name);
    fclose(file);
    return real(name, service, hints, result);
}
