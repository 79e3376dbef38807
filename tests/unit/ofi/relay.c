/* SPDX-License-Identifier: BSD-2-Clause */
#include "relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLICES 100u /* of a second */

struct relay {
	pthread_t thread;
	struct sockaddr_in target;
	size_t rate;
	int listener;
	int ends[2];
	uint32_t stalled; /* atomic */
	uint32_t closed;  /* atomic */
	unsigned char *bytes;
};

/* Forward the bytes of one time slice, or fewer. False: this direction has ended. */
static bool forward_slice(struct relay *relay, int from, int to)
{
	size_t left = relay->rate / SLICES;

	while (left > 0) {
		const ssize_t got = recv(from, relay->bytes, left, MSG_DONTWAIT);

		if (got == 0)
			return false;
		if (got < 0)
			return true;
		for (ssize_t sent = 0, n; sent < got; sent += n) {
			n = send(to, relay->bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL);
			if (n <= 0)
				return false;
		}
		left -= (size_t)got;
	}
	return true;
}

static void *run_relay(void *arg)
{
	struct relay *relay = arg;
	bool open = true;

	relay->ends[0] = accept(relay->listener, NULL, NULL);
	relay->ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(relay->ends[1], (struct sockaddr *)&relay->target, sizeof(relay->target)) != 0)
		return NULL;
	while (open && __atomic_load_n(&relay->closed, __ATOMIC_ACQUIRE) == 0) {
		(void)poll(NULL, 0, 1000 / SLICES);
		if (__atomic_load_n(&relay->stalled, __ATOMIC_ACQUIRE) == 0)
			open = forward_slice(relay, relay->ends[0], relay->ends[1]) &&
			       forward_slice(relay, relay->ends[1], relay->ends[0]);
	}
	(void)close(relay->ends[0]);
	(void)close(relay->ends[1]);
	return NULL;
}

struct relay *relay_start(struct pair *p, size_t rate)
{
	struct relay *relay = calloc(1, sizeof(*relay));
	struct sockaddr_in *address = (struct sockaddr_in *)(void *)&p->address;
	struct sockaddr_in own = *address;
	socklen_t len = sizeof(own);

	relay->rate = rate;
	relay->bytes = malloc(rate / SLICES);
	relay->target = *address;
	relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	own.sin_port = 0;
	assert_int_equal(bind(relay->listener, (struct sockaddr *)&own, len), 0);
	assert_int_equal(listen(relay->listener, 1), 0);
	assert_int_equal(getsockname(relay->listener, (struct sockaddr *)address, &len), 0);
	assert_int_equal(pthread_create(&relay->thread, NULL, run_relay, relay), 0);
	return relay;
}

void relay_stall(struct relay *relay)
{
	__atomic_store_n(&relay->stalled, 1, __ATOMIC_RELEASE);
}

void relay_close(struct relay *relay)
{
	__atomic_store_n(&relay->closed, 1, __ATOMIC_RELEASE);
	(void)pthread_join(relay->thread, NULL);
	(void)close(relay->listener);
	free(relay->bytes);
	free(relay);
}
