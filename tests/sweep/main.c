/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: sweep [--memory] [--script NAME] [--nth N] URI
 *
 * Runs every script over two adapters of URI, of which the one fails (it is opened as fault:URI),
 * on either side of the connection. With --memory not a call of the provider fails but an
 * allocation of the library. Besides the script's own steps, of every run is checked: nothing is in
 * flight when all is closed; a connection of the same two adapters that has nothing to do with it
 * goes on; the same script, when nothing fails, succeeds on the same adapters; at the end no
 * descriptor is left.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sweep.h"

#define ALARM_S 120u
#define URI_SIZE 200u
#define RUNS_MAX 4000u

const struct script sweep_scripts[] = {
	{"open", script_open, 0, true},
	{"objects", script_objects, 0, false},
	{"memory", script_memory, 0, false},
	{"connect", script_connect, 0, false},
	{"reject", script_reject, 0, false},
	{"decline", script_decline, 0, false},
	{"cancel", script_cancel, 0, false},
	{"helpers", script_helpers, 0, false},
	{"messages", script_messages, 0, false},
	{"lists", script_lists, 0, false},
	{"rdma", script_rdma, 0, false},
	{"write_immediate", script_write_immediate, NDX_CAP_WRITE_IMMEDIATE, false},
	{"windows", script_windows, NDX_CAP_MEMORY_WINDOW, false},
	{"shared", script_shared, NDX_CAP_SRQ, false},
	{"shared_list", script_shared_list, NDX_CAP_SRQ, false},
	{"notify", script_notify, 0, false},
	{"leave", script_leave, 0, false},
	{"cross", script_cross, 0, false},
	{"close_qp", script_close_qp, 0, false},
	{"close_connector", script_close_connector, 0, false},
	{"flush", script_flush, 0, false},
	{"receiver", script_receiver, 0, false},
	{NULL, NULL, 0, false},
};

struct options {
	const char *uri;
	const char *script; /* NULL: all */
	uint64_t nth;       /* 0: every one */
	bool memory;
};

/* One script with one role: the runs of all N. */
struct sweep {
	const struct options *options;
	const struct script *script;
	bool swapped; /* the passive side fails */
	struct run run;
	struct run bystander;
	uint64_t runs;
	uint64_t calls;
};

/* ---- the watchdog ---- */

static char where_text[256];
static volatile sig_atomic_t where_len;

static void on_alarm(int signal)
{
	ssize_t n = write(STDERR_FILENO, where_text, (size_t)where_len);

	(void)signal;
	(void)n;
	abort();
}

static void watch(const struct sweep *w, const char *what)
{
	const int len =
		snprintf(where_text, sizeof(where_text), "HANGS: %s, N = %llu, %s, %s, seed %llu\n",
	                 w->script->name, (unsigned long long)w->run.nth, what,
	                 w->run.stubborn ? "stubborn" : "stops", (unsigned long long)w->run.random);

	where_len = len > 0 && (size_t)len < sizeof(where_text) ? len : 0;
	(void)alarm(ALARM_S);
}

/* ---- set-up ---- */

static unsigned count_fds(void)
{
	unsigned count = 0;
	DIR *dir = opendir("/proc/self/fd");

	if (dir == NULL)
		return 0;
	while (readdir(dir) != NULL) /* NOLINT(concurrency-mt-unsafe): one stream, one thread */
		count++;
	(void)closedir(dir);
	return count;
}

/* For people: what is open. */
static void print_fds(void)
{
	char target[128];
	char path[64];

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0)
			printf("#   %d -> %.*s\n", fd, (int)n, target);
	}
}

static void begin_run(struct run *r, const struct sweep *w, uint64_t nth, bool stubborn)
{
	r->uri = w->options->uri;
	r->script = w->script->name;
	r->nth = nth;
	r->stubborn = stubborn;
	r->active = &r->sides[w->swapped ? 1 : 0];
	r->passive = &r->sides[w->swapped ? 0 : 1];
	r->repeated = false;
	r->failed = false;
	r->wrong = false;
	r->why[0] = '\0';
	r->wrong_why[0] = '\0';
}

/* Of the two sides the first one fails. */
static bool open_sides(struct sweep *w)
{
	static const char *const names[] = {"A", "B"};
	char uri[URI_SIZE];

	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &w->run.sides[i];

		(void)snprintf(uri, sizeof(uri), "%s%s",
		               i == 0 && !w->options->memory ? "fault:" : "", w->options->uri);
		s->run = &w->run;
		s->name = names[i];
		s->info.size = sizeof(s->info);
		if (ndx_adapter_open(uri, &s->adapter) != NDX_OK ||
		    ndx_adapter_query(s->adapter, &s->info) != NDX_OK) {
			printf("# %s: %s\n", uri, ndx_last_error());
			return false;
		}
		w->bystander.sides[i] = (struct side){.run = &w->bystander,
		                                      .name = names[i],
		                                      .adapter = s->adapter,
		                                      .info = s->info};
	}
	w->run.faulty = w->options->memory ? NULL : &w->run.sides[0];
	w->bystander.faulty = w->run.faulty;
	return ndx_port_create(&w->run.port) == NDX_OK &&
	       ndx_port_create(&w->bystander.port) == NDX_OK;
}

static void close_sides(struct sweep *w)
{
	sweep_close(&w->bystander);
	ndx_adapter_close(w->run.sides[0].adapter);
	ndx_adapter_close(w->run.sides[1].adapter);
	ndx_port_close(w->run.port);
	ndx_port_close(w->bystander.port);
}

/* A message each way on a connection that has nothing to do with what fails. */
static bool bystander_lives(struct sweep *w)
{
	struct side *a = &w->bystander.sides[0];
	struct side *b = &w->bystander.sides[1];
	const unsigned char seed = (unsigned char)w->runs;

	sweep_fill(a, 0, 64, seed);
	sweep_fill(b, 0, 64, (unsigned char)(seed + 1));
	return step_receive(a, 100, 64) && step_receive(b, 100, 64) && step_send(a, 0, 64, 0) &&
	       step_send(b, 0, 64, 0) && step_results(a, 2, NDX_OK) && step_results(b, 2, NDX_OK) &&
	       sweep_is_filled(b, 100, 64, seed) &&
	       sweep_is_filled(a, 100, 64, (unsigned char)(seed + 1));
}

/* ---- running ---- */

static bool complain(const struct sweep *w, const char *when, const char *why)
{
	printf("not ok %s %s, %s side fails\n# N = %llu (%s), %s: %s%s\n", w->options->uri,
	       w->script->name, w->swapped ? "passive" : "active", (unsigned long long)w->run.nth,
	       w->run.why, w->run.stubborn ? "stubborn" : "stops", when, why);
	return false;
}

/* Returns whether the library kept its word; *struck: whether the script came so far as N. */
static bool run_once(struct sweep *w, uint64_t nth, bool stubborn, bool *struck)
{
	struct run *r = &w->run;

	w->runs++;
	begin_run(r, w, nth, stubborn);
	watch(w, "script");
	faults_arm(r, nth);
	w->script->play(r);
	sweep_close(r);
	*struck = faults_struck(r);
	if (!*struck)
		w->calls = faults_counted(r);
	faults_arm(r, 0);
	if (r->wrong)
		return complain(w, "", r->wrong_why);
	if (r->failed && !*struck)
		return complain(w, "nothing was made to fail: ", r->why);
	watch(w, "bystander");
	if (!bystander_lives(w))
		return complain(w, "another connection suffered: ", w->bystander.wrong_why);
	return true;
}

/* Every N, once stopping at the failure, once stubbornly going on, and once more without. */
static bool sweep_all(struct sweep *w)
{
	const uint64_t only = w->options->nth;
	bool struck = true;

	for (uint64_t nth = only != 0 ? only : 1; struck && (only == 0 || nth == only); nth++) {
		bool again = false;

		if (nth > RUNS_MAX)
			return complain(w, "", "the script does not come to its end");
		if (!run_once(w, nth, false, &struck) || !run_once(w, nth, true, &again) ||
		    !run_once(w, 0, false, &again))
			return false;
	}
	return true;
}

static bool has(const struct sweep *w)
{
	return (w->run.sides[0].info.capabilities & w->script->needs) == w->script->needs;
}

static bool sweep_script(const struct options *options, const struct script *script, bool swapped)
{
	static struct sweep sweep; /* large, and of no use to the allocator under test */
	struct sweep *w = &sweep;
	const unsigned fds = count_fds();
	bool good = false;

	memset(w, 0, sizeof(*w));
	w->options = options;
	w->script = script;
	w->swapped = swapped;
	w->run.random = 1;
	begin_run(&w->bystander, w, 0, false);
	watch(w, "set-up");
	if (!open_sides(w))
		return false;
	if (!has(w)) {
		printf("ok %s %s # SKIP the adapter lacks it\n", options->uri, script->name);
		good = true;
	} else if (sweep_pair(&w->bystander)) {
		good = sweep_all(w);
		if (good)
			printf("ok %s %s, %s side fails: %llu calls, %llu runs\n", options->uri,
			       script->name, swapped ? "passive" : "active",
			       (unsigned long long)w->calls, (unsigned long long)w->runs);
	} else {
		printf("# no other connection to watch: %s\n", w->bystander.wrong_why);
	}
	watch(w, "clean-up");
	close_sides(w);
	if (good && count_fds() != fds) {
		printf("# %s: %u descriptors are left\n", script->name, count_fds() - fds);
		print_fds();
		good = false;
	}
	(void)fflush(stdout);
	return good;
}

static bool parse(int argc, char **argv, struct options *o)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--memory") == 0)
			o->memory = true;
		else if (strcmp(argv[i], "--script") == 0 && i + 1 < argc)
			o->script = argv[++i];
		else if (strcmp(argv[i], "--nth") == 0 && i + 1 < argc)
			o->nth = strtoull(argv[++i], NULL, 10);
		else
			return false;
	}
	if (i + 1 != argc)
		return false;
	o->uri = argv[i];
	return strlen(o->uri) + sizeof("fault:") <= URI_SIZE;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	unsigned failed = 0;
	unsigned done = 0;

	if (!parse(argc, argv, &o)) {
		(void)fprintf(stderr, "usage: sweep [--memory] [--script NAME] [--nth N] URI\n");
		return 2;
	}
	(void)signal(SIGALRM, on_alarm);
	for (const struct script *s = sweep_scripts; s->name != NULL; s++) {
		if ((o.script != NULL && strcmp(o.script, s->name) != 0) ||
		    (s->memory_only && !o.memory))
			continue;
		/* memory is the process's: it does not matter which side */
		for (int swapped = 0; swapped < (o.memory ? 1 : 2); swapped++) {
			failed += !sweep_script(&o, s, swapped != 0);
			done++;
		}
	}
	printf("# %u sweeps, %u failed\n", done, failed);
	return failed == 0 && done > 0 ? 0 : 1;
}
