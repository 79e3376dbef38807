/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGINT and SIGTERM: a thread waits for them, because blocking calls must be cancelled by a call.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "negotiate.h"
#include "sample_options.h"

static struct {
	pthread_mutex_t lock;
	struct ndx_session *session; /* the running session; NULL: none */
	atomic_int number;           /* of the received signal; 0: none */
	atomic_bool asked;
} stopping = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void fill_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGTERM);
}

/* A second signal ends the program at once, but not one that comes with the first: timeout(1) sends
 * its signal to the program and to the program's group. */
static void *watch(void *arg)
{
	const struct timespec moment = {.tv_nsec = 500000000L};
	const struct timespec nothing = {.tv_nsec = 0};
	sigset_t set;
	int number;

	(void)arg;
	fill_signals(&set);
	if (sigwait(&set, &number) != 0)
		return NULL;
	stopping.number = number;
	stop_now();
	(void)nanosleep(&moment, NULL);
	while (sigtimedwait(&set, NULL, &nothing) > 0) {
		/* they came with the first */
	}
	if (sigwait(&set, &number) != 0)
		return NULL;
	stopping.number = number;
	stop_by_signal();
	return NULL;
}

int stop_begin(void)
{
	pthread_t thread;
	sigset_t set;
	int rc;

	fill_signals(&set);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	rc = pthread_create(&thread, NULL, watch, NULL);
	if (rc != 0) {
		fprintf(stderr, "ndx-negotiate: no thread: %s\n", strerror(rc));
		return SAMPLE_EXIT_FAILED;
	}
	(void)pthread_detach(thread);
	return SAMPLE_EXIT_OK;
}

void stop_now(void)
{
	pthread_mutex_lock(&stopping.lock);
	stopping.asked = true;
	if (stopping.session != NULL)
		ndx_session_cancel(stopping.session);
	pthread_mutex_unlock(&stopping.lock);
}

const atomic_bool *stop_flag(void)
{
	return &stopping.asked;
}

void stop_cancels(struct ndx_session *session)
{
	pthread_mutex_lock(&stopping.lock);
	stopping.session = session;
	if (session != NULL && stopping.asked)
		ndx_session_cancel(session);
	pthread_mutex_unlock(&stopping.lock);
}

void stop_by_signal(void)
{
	const int number = stopping.number;
	sigset_t set;

	if (number == 0)
		return;
	fill_signals(&set);
	(void)signal(number, SIG_DFL);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(number);
}
