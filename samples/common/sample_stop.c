/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_stop.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sample_clock.h"
#include "sample_options.h"

static struct {
	pthread_mutex_t lock;
	sem_t came;
	atomic_int number; /* of the first signal; 0: none */
	atomic_llong since_ms;
	pid_t owner; /* the process of sample_stop_with() */
	void (*summary)(void *arg);
	void *arg;
} stopping = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* End as if nothing had handled the signal. Other threads have it blocked or not; we do not. */
static void die_by(int number)
{
	sigset_t set;

	(void)signal(number, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, number);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(number);
}

/* In a handler: is this the first signal? One that comes later ends the program at once; timeout(1)
 * and shells may send the first one twice. */
static bool is_first(int number)
{
	const long long now = (long long)sample_now_ms();
	long long none = 0;

	if (atomic_compare_exchange_strong(&stopping.since_ms, &none, now)) {
		stopping.number = number;
		/* The lock's owner may be stuck, and the summary with it. */
		(void)alarm(SAMPLE_STOP_S);
		return true;
	}
	if (now - stopping.since_ms >= SAMPLE_AGAIN_MS)
		die_by(number);
	return false;
}

static void (*ask_stop)(int signal_number);

static void on_alarm(int number)
{
	(void)number;
	die_by(stopping.number);
}

static void on_stop(int number)
{
	const int error = errno;

	(void)is_first(number);
	ask_stop(number);
	errno = error;
}

void sample_on_stop(void (*handler)(int signal_number))
{
	struct sigaction action;

	ask_stop = handler;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_alarm;
	(void)sigaction(SIGALRM, &action, NULL);
	action.sa_handler = on_stop;
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

void sample_stop_by_signal(void)
{
	if (stopping.number != 0)
		die_by(stopping.number);
}

/* Only what a signal handler may call. */
static void on_signal(int number)
{
	const int error = errno;

	if (getpid() != stopping.owner)
		die_by(number);
	if (is_first(number))
		(void)sem_post(&stopping.came);
	errno = error;
}

static void *await_signal(void *arg)
{
	(void)arg;
	while (sem_wait(&stopping.came) != 0) {
		/* interrupted */
	}
	sample_stop_lock();
	stopping.summary(stopping.arg);
	(void)fflush(stdout);
	die_by(stopping.number);
	return NULL;
}

int sample_stop_with(const char *program, void (*summary)(void *arg), void *arg)
{
	struct sigaction action;
	pthread_t thread;
	sigset_t all, old;
	int rc;

	stopping.owner = getpid();
	stopping.summary = summary;
	stopping.arg = arg;
	(void)sem_init(&stopping.came, 0, 0);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, await_signal, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		fprintf(stderr, "%s: no thread: %s\n", program, strerror(rc));
		return SAMPLE_EXIT_FAILED;
	}
	(void)pthread_detach(thread);
	memset(&action, 0, sizeof(action));
	action.sa_flags = SA_RESTART;
	action.sa_handler = on_alarm;
	(void)sigaction(SIGALRM, &action, NULL);
	action.sa_handler = on_signal;
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	return SAMPLE_EXIT_OK;
}

void sample_stop_lock(void)
{
	(void)pthread_mutex_lock(&stopping.lock);
}

void sample_stop_unlock(void)
{
	(void)pthread_mutex_unlock(&stopping.lock);
}
