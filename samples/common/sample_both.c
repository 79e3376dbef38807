/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_both.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sample_address.h"
#include "sample_options.h"

/** The server's thread, and what it passes to the client. */
struct server {
	const struct sample_both *both;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ready, ended;
	char address[SAMPLE_ADDRESS_TEXT];
	int rc;
};

static void on_ready(void *arg, const char *address)
{
	struct server *server = arg;

	pthread_mutex_lock(&server->lock);
	snprintf(server->address, sizeof(server->address), "%s", address);
	server->ready = true;
	pthread_cond_signal(&server->changed);
	pthread_mutex_unlock(&server->lock);
}

static void *server_thread(void *arg)
{
	struct server *server = arg;

	server->rc = server->both->server(server->both->server_options, on_ready, server);
	pthread_mutex_lock(&server->lock);
	server->ended = true;
	pthread_cond_signal(&server->changed);
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

int sample_run_both(const struct sample_both *both)
{
	struct server server = {.both = both,
	                        .lock = PTHREAD_MUTEX_INITIALIZER,
	                        .changed = PTHREAD_COND_INITIALIZER};
	int rc = SAMPLE_EXIT_OK;
	pthread_t thread;
	int error;

	error = pthread_create(&thread, NULL, server_thread, &server);
	if (error != 0) {
		fprintf(stderr, "%s: no thread: %s\n", both->program, strerror(error));
		return SAMPLE_EXIT_FAILED;
	}
	pthread_mutex_lock(&server.lock);
	while (!server.ready && !server.ended)
		pthread_cond_wait(&server.changed, &server.lock);
	pthread_mutex_unlock(&server.lock);
	if (server.ready) {
		rc = both->client(both->client_options, server.address);
		if (rc != SAMPLE_EXIT_OK)
			both->stop();
	}
	pthread_join(thread, NULL);
	return rc != SAMPLE_EXIT_OK ? rc : server.rc;
}
