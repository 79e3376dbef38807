/* SPDX-License-Identifier: BSD-2-Clause */
/* The Unix socket of a server: made, found in use, removed. */
#ifndef CONTROL_SOCKET_H
#define CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

/** A socket that listens at a path of the file system, for its owner only. */
struct control_socket {
	int fd;
	struct sockaddr_un at;
	dev_t dev; /* of the socket's file, ... */
	ino_t ino; /* ... so that no other one is removed */
};

/** The address of a path; false, with an explanation on stderr: the path is empty or too long. */
bool control_address(const char *who, const char *path, struct sockaddr_un *at);

/**
 * Listen at @p path, without blocking. A stale socket, without a listener, is replaced. Returns
 * an enum sample_exit; a failure was explained on stderr.
 */
int control_socket_open(const char *who, const char *path, struct control_socket *out);

/** Close the socket and remove its file. */
void control_socket_close(struct control_socket *s);

#endif
