/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address without a listener. A port that was just free may be another program's by the time it
 * is connected to; this one is bound, and stays so until what is returned is closed.
 */
#ifndef CLOSED_PORT_H
#define CLOSED_PORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define CLOSED_PORT_TEXT 32

static inline int closed_port_at(struct sockaddr_in *at)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*at);

	*at = (struct sockaddr_in){.sin_family = AF_INET,
	                           .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &length), 0);
	return fd;
}

/* Its text. */
static inline int closed_port(char address[CLOSED_PORT_TEXT])
{
	struct sockaddr_in at;
	const int fd = closed_port_at(&at);

	(void)snprintf(address, CLOSED_PORT_TEXT, "127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

#endif
