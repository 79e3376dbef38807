/* SPDX-License-Identifier: BSD-2-Clause */
/* Running cases, with a watchdog, so that a library that hangs is a failure and not a hang. */
#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "logring.h"
#include "runner.h"

enum {
	CASE_LIMIT_MS = 120000, /* one run of one case */
	PROGRESS_MS = 20000,
	FAILURES_ENOUGH = 5, /* failed runs of one case, then its repetitions end */
};

struct watchdog {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct report *report;
	const char *name; /* of the case that runs, NULL: none */
	struct check *check;
	uint64_t deadline;
	bool stop;
};

static void bite(struct watchdog *dog)
{
	report_note(dog->report, "%s, seed 0x%" PRIx64 ": %s; %s", dog->name, dog->check->seed,
	            dog->check->reason, dog->check->notes);
	(void)fprintf(dog->report->tap, "Bail out! %s has hung for %d ms\n", dog->name,
	              CASE_LIMIT_MS);
	(void)fflush(dog->report->tap);
	_exit(1);
}

static void *watch(void *arg)
{
	struct watchdog *dog = arg;
	struct timespec until;

	(void)pthread_mutex_lock(&dog->lock);
	while (!dog->stop) {
		if (dog->name && now_ms() > dog->deadline)
			bite(dog);
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		(void)pthread_cond_timedwait(&dog->wake, &dog->lock, &until);
	}
	(void)pthread_mutex_unlock(&dog->lock);
	return NULL;
}

static void watchdog_set(struct watchdog *dog, const char *name, struct check *check)
{
	(void)pthread_mutex_lock(&dog->lock);
	dog->name = name;
	dog->check = check;
	dog->deadline = now_ms() + CASE_LIMIT_MS;
	(void)pthread_mutex_unlock(&dog->lock);
}

static bool watchdog_start(struct watchdog *dog, struct report *report)
{
	sigset_t all;
	sigset_t before;
	int err;

	memset(dog, 0, sizeof(*dog));
	dog->report = report;
	(void)pthread_mutex_init(&dog->lock, NULL);
	(void)pthread_cond_init(&dog->wake, NULL);
	/* Like the library's threads, so that a case can tell whose a thread is. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&dog->thread, NULL, watch, dog);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err == 0;
}

static void watchdog_stop(struct watchdog *dog)
{
	(void)pthread_mutex_lock(&dog->lock);
	dog->stop = true;
	(void)pthread_cond_signal(&dog->wake);
	(void)pthread_mutex_unlock(&dog->lock);
	(void)pthread_join(dog->thread, NULL);
	(void)pthread_cond_destroy(&dog->wake);
	(void)pthread_mutex_destroy(&dog->lock);
}

bool case_selected(const struct options *o, const struct conf_case *one)
{
	return !o->filter || fnmatch(o->filter, one->name, 0) == 0;
}

size_t count_selected(const struct options *o)
{
	size_t count = 0;

	for (size_t i = 0; i < conf_case_count; i++)
		count += case_selected(o, &conf_cases[i]);
	return count;
}

/* The first repetition has the seed itself, so that a seed that was printed can be given back. */
static uint64_t seed_of(uint64_t seed, unsigned repetition)
{
	uint64_t state = seed + repetition;

	return repetition == 0 ? seed : random_next(&state);
}

static bool describes_otherwise(const struct world *world, const struct conf_case *one,
                                struct verdict *v)
{
	if ((one->flags & CASE_DESCRIBED) == 0 || world->describes_alike)
		return false;
	v->outcome = OUTCOME_SKIPPED;
	(void)snprintf(v->reason, sizeof(v->reason),
	               "the sides describe their queue pairs in different kinds");
	return true;
}

/* Two stacks that connect to each other do so without shared receive queues. */
static bool shares_otherwise(const struct world *world, const struct conf_case *one,
                             struct verdict *v)
{
	if ((one->needs & NDX_CAP_SRQ) == 0 ||
	    strcmp(world->places[0].info.provider, world->places[1].info.provider) == 0)
		return false;
	v->outcome = OUTCOME_SKIPPED;
	(void)snprintf(v->reason, sizeof(v->reason),
	               "the sides are on two stacks, which share no receives with each other");
	return true;
}

static bool lacks_capability(const struct world *world, const struct conf_case *one,
                             struct verdict *v)
{
	uint64_t missing = 0;

	for (size_t i = 0; i < 2; i++)
		missing |= one->needs & ~world->places[i].info.capabilities;
	if (!missing)
		return false;
	v->outcome = OUTCOME_SKIPPED;
	(void)snprintf(v->reason, sizeof(v->reason), "the adapter lacks %s",
	               ndx_capability_name((enum ndx_capability)(missing & -missing)));
	return true;
}

static void add_totals(struct totals *sum, const struct totals *more)
{
	sum->sends_ok += more->sends_ok;
	sum->received += more->received;
	sum->missing += more->missing;
}

static enum outcome run_once(const struct conf_case *one, struct world *world, uint64_t seed,
                             struct watchdog *dog, struct verdict *v)
{
	struct check check;
	enum outcome outcome;

	check_begin(&check, world, seed);
	logring_clear();
	watchdog_set(dog, one->name, &check);
	one->run(&check);
	if (check.outcome == OUTCOME_FAILED && v->failed_runs == 0)
		logring_read(v->log, sizeof(v->log));
	pair_close_all(&check);
	watchdog_set(dog, NULL, NULL);
	outcome = check.outcome;
	add_totals(&dog->report->totals, &check.totals);
	v->runs++;
	if (outcome == OUTCOME_FAILED && v->failed_runs++ == 0) {
		v->seed = seed;
		(void)snprintf(v->reason, sizeof(v->reason), "%s%s%s", check.reason,
		               check.notes[0] != '\0' ? "; last: " : "", check.notes);
	} else if (outcome == OUTCOME_SKIPPED && v->failed_runs == 0) {
		(void)snprintf(v->reason, sizeof(v->reason), "%s", check.reason);
	}
	check_end(&check);
	return outcome;
}

static void run_case(const struct options *o, const struct conf_case *one, struct world *world,
                     struct watchdog *dog)
{
	struct verdict v = {.which = one, .seed = o->seed};
	unsigned repeats = o->repeat;
	uint64_t start = now_ms();
	uint64_t progress = start + PROGRESS_MS;
	bool passed = false;

	v.deviation = deviation_find(world->places[0].info.uri, one->name);
	if (!v.deviation)
		v.deviation = deviation_find(world->places[1].info.uri, one->name);
	if (lacks_capability(world, one, &v) || describes_otherwise(world, one, &v) ||
	    shares_otherwise(world, one, &v)) {
		report_case(dog->report, &v);
		return;
	}
	if ((one->flags & CASE_SLOW) && repeats > SLOW_REPEATS) {
		repeats = SLOW_REPEATS;
		report_note(dog->report, "%s is slow: %u of %u repetitions", one->name, repeats,
		            o->repeat);
	}
	for (unsigned i = 0; i < repeats && v.failed_runs < FAILURES_ENOUGH; i++) {
		passed |= run_once(one, world, seed_of(o->seed, i), dog, &v) == OUTCOME_PASSED;
		if (now_ms() >= progress) {
			progress += PROGRESS_MS;
			report_note(dog->report, "%s: %u of %u", one->name, i + 1, repeats);
		}
		report_alive(dog->report);
	}
	v.seconds = (double)(now_ms() - start) / 1000;
	if (v.failed_runs)
		v.outcome = OUTCOME_FAILED;
	else
		v.outcome = passed ? OUTCOME_PASSED : OUTCOME_SKIPPED;
	if (v.outcome == OUTCOME_PASSED)
		v.reason[0] = '\0';
	report_case(dog->report, &v);
}

bool run_cases(const struct options *o, struct world *world, struct report *report)
{
	struct watchdog dog;

	if (!watchdog_start(&dog, report)) {
		(void)fprintf(report->tap, "Bail out! no thread for the watchdog\n");
		return false;
	}
	for (size_t i = 0; i < conf_case_count; i++) {
		if (case_selected(o, &conf_cases[i]))
			run_case(o, &conf_cases[i], world, &dog);
	}
	watchdog_stop(&dog);
	return report->failed == 0;
}
