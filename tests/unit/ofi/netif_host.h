/* SPDX-License-Identifier: BSD-2-Clause */
/* Real network interfaces, in a network namespace of the test's own. */
#ifndef NETIF_HOST_H
#define NETIF_HOST_H

#include <stdbool.h>

#define NETIF_WAIT_MS 20000

/* Before other threads exist: take a network namespace of the test's own, if that is allowed. */
void netif_host_init(void);
/* At the beginning of a test: lo is up, and there are no interfaces of a test before. Skips the
 * test where it has no network of its own. */
void netif_host_begin(void);
void netif_host_set_up(const char *name, bool up);
/* `alias` is an interface, or its name, a colon and a number. */
void netif_host_add_address(const char *alias, const char *text);
/* ip(8) with these arguments. */
bool netif_host_ip(const char *arguments);
/* The kernel finds a carrier, and gives a link-local address, some time after both ends of a
 * virtual cable were set up. */
void netif_host_await_carrier(const char *name);
void netif_host_await_link_local(const char *name);

#endif
