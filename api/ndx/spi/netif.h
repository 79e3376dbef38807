/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel reports (rtnetlink(7)) about the network interfaces of this host: their state and
 * their addresses. A provider whose stack reports no events of its ports has them from here. */
#ifndef NDX_SPI_NETIF_H
#define NDX_SPI_NETIF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

enum ndxp_netif_what {
	NDXP_NETIF_STATE,   /* `up` has the state; the same state may come again */
	NDXP_NETIF_REMOVED, /* there is no such interface any more */
	NDXP_NETIF_ADDRESS, /* an address; as an event: it came, went or was renewed */
};

struct ndxp_netif_report {
	enum ndxp_netif_what what;
	unsigned index;   /* as if_nametoindex() */
	const char *name; /* valid during the call; NULL: the message has none */
	bool up;          /* NDXP_NETIF_STATE: set up, and with a carrier */
	/* NDXP_NETIF_ADDRESS: a link-local one has its scope; AF_UNSPEC: of another family */
	struct sockaddr_storage address;
};

typedef void ndxp_netif_fn(void *arg, const struct ndxp_netif_report *report);

/* A descriptor that becomes readable with each event, in the network namespace of the calling
 * thread; it does not block. -1 with errno. Close it with ndxp_fd_close(). */
int ndxp_netif_open(void);

/* Read a number of events and call `fn` with each. True: all that there were; false: there may be
 * more, and the descriptor is still readable. Sets `*lost` where the kernel has dropped events or
 * an event was too long, and never clears it: when all are read, compare what is known with
 * ndxp_netif_list(). */
bool ndxp_netif_read(int fd, ndxp_netif_fn *fn, void *arg, bool *lost);

/* Call `fn` with the state of each interface, then with each address, in the order of getifaddrs().
 * The answer of the kernel is there at once. False with errno: not all could be had. */
bool ndxp_netif_list(ndxp_netif_fn *fn, void *arg);

/* Call `fn` with each report in messages of the kernel, `length` bytes, aligned to 4. What is cut
 * or about something else is ignored. For the calls above, and for tests. */
void ndxp_netif_parse(const void *messages, size_t length, ndxp_netif_fn *fn, void *arg);

NDXP_DECLS_END

#endif
