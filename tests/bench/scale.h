/* SPDX-License-Identifier: BSD-2-Clause */
/* Many connections between two adapters of this process, all on one completion queue each. */
#ifndef BENCH_SCALE_H
#define BENCH_SCALE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/ndx.h>

#define SCALE_MESSAGE 64u
#define SCALE_DEPTH 4u /* of the queues of a connection */

struct scale_conn {
	struct ndx_qp *qp[2];
	struct ndx_connector *connector[2];
	bool busy; /* a message is under way */
};

struct scale_net {
	struct ndx_adapter *adapter[2];
	struct ndx_cq *cq[2];
	struct ndx_mr *mr[2];
	char memory[2][2 * SCALE_MESSAGE]; /* what is sent, then what is received */
	struct ndx_listener *listener;
	struct sockaddr_storage address;
	socklen_t address_len;
	struct scale_conn *conns;
	unsigned count;
	uint32_t reads; /* that each side may have under way on a connection */
};

void scale_open(struct scale_net *net, const char *uri, unsigned most, uint32_t reads);
/* Add connections until there are `count`; false: the system has no room for more. */
bool scale_grow(struct scale_net *net, unsigned count);
void scale_close(struct scale_net *net);
/* Connect `count` more and let them go again, one by one; nanoseconds for each way. False: the
 * system has no room for more. */
bool scale_churn(struct scale_net *net, unsigned count, double *connect, double *leave);

/* `messages` there and back, on `width` connections at a time from number `first` on, each in turn;
 * nanoseconds for one message one way. */
double scale_echo(struct scale_net *net, unsigned first, unsigned width, unsigned messages);

#endif
