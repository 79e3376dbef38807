/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the network interfaces behind the adapter, from rtnetlink(7). libfabric reports none: a
 * connection only stalls while its interface is down. */
#ifndef OFI_NETIF_H
#define OFI_NETIF_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include <ndx/spi/loop.h>
#include <ndx/status.h>

struct ndxp_netif_report;

struct ofi_netif_addresses {
	struct sockaddr_storage *list;
	size_t count;
};

/* An interface; to programs it is port number (position + 1) of the adapter. Control thread. */
struct ofi_netif {
	char name[IF_NAMESIZE];
	unsigned index; /* 0: the interface was removed */
	bool up;        /* set up, and with a carrier */
	bool found;     /* in the list that is being read */
	struct ofi_netif_addresses addresses;
	struct ofi_netif_addresses found_addresses;
};

struct ofi_netifs {
	struct ndxp_watch watch; /* fd -1: no events can be had here */
	struct ndxp_timer retry; /* the state could not be read */
	bool compare;            /* addresses may be others, or the kernel has dropped messages */
	bool failing;            /* the state could not be read, and the log has this */
	struct ofi_netif *list;
	size_t count;
};

struct ofi_adapter;

/* Begin to report events of the interfaces that have the adapter's addresses. NDX_OK without a
 * descriptor where the system refuses such sockets. */
enum ndx_status ofi_netifs_open(struct ofi_adapter *adapter);
/* Control thread. */
void ofi_netifs_close(struct ofi_adapter *adapter);
/* Control thread: process an event of the kernel; `arg` is the struct ofi_adapter. */
void ofi_netifs_event(void *arg, const struct ndxp_netif_report *r);
/* Control thread: compare what is known with the present state, and report what differs. False: the
 * state could not be read. */
bool ofi_netifs_compare(struct ofi_adapter *adapter);

#endif
