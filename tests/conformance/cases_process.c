/* SPDX-License-Identifier: BSD-2-Clause */
/* process.*: what the library does to the process that it is in. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ndx/negotiation_server.h>

#include "cases.h"
#include "same_plugin.h"
#include "traffic.h"

/* ---- threads ---- */

/* Of a thread: its name, 'S' when it sleeps, and which of signals 1 .. 64 it blocks. */
struct thread_state {
	char name[32];
	char state;
	unsigned long long blocked;
};

static bool read_thread(const char *tid, struct thread_state *t)
{
	char path[64];
	char line[256];
	FILE *file;

	memset(t, 0, sizeof(*t));
	(void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "Name: %31s", t->name);
		(void)sscanf(line, "State: %c", &t->state);
		if (strncmp(line, "SigBlk:", 7) == 0)
			t->blocked = strtoull(line + 7, NULL, 16);
	}
	(void)fclose(file);
	return true;
}

/* A thread that begins blocks everything until it has its own mask: wait until it sleeps. */
static bool read_asleep(const char *tid, struct thread_state *t)
{
	const uint64_t deadline = now_ms() + WAIT_MS;
	bool there = read_thread(tid, t);

	while (there && t->state != 'S' && now_ms() < deadline) {
		(void)poll(NULL, 0, 1);
		there = read_thread(tid, t);
	}
	return there;
}

/* The first signal that another program may send and that such a thread would take. */
static int taken_by(const struct thread_state *t)
{
	for (int s = 1; s < 32; s++) {
		switch (s) {
		case SIGKILL: /* cannot be blocked */
		case SIGSTOP:
		case SIGSEGV: /* what a thread raises itself */
		case SIGBUS:
		case SIGFPE:
		case SIGILL:
		case SIGTRAP:
		case SIGSYS:
			break;
		default:
			if (!(t->blocked & 1ull << (s - 1)))
				return s;
		}
	}
	return 0;
}

/* Look at all threads but this one, which is the program's; the runner's other one blocks as the
 * library's do. Says how many take a signal, and the name of the last such. */
static unsigned count_takers(struct check *c, char name[32], int *signal_number)
{
	DIR *all = opendir("/proc/self/task");
	const long self = syscall(SYS_gettid);
	unsigned takers = 0;
	struct dirent *entry;
	struct thread_state t;

	if (!all) {
		check_fail(c, "/proc/self/task cannot be read");
		return 0;
	}
	while ((entry = readdir(all)) != NULL) {
		if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == self ||
		    !read_asleep(entry->d_name, &t) || taken_by(&t) == 0)
			continue;
		*signal_number = taken_by(&t);
		memcpy(name, t.name, 32);
		takers++;
	}
	(void)closedir(all);
	return takers;
}

static void *sleep_on_lock(void *arg)
{
	pthread_mutex_t *lock = arg;

	(void)pthread_mutex_lock(lock);
	(void)pthread_mutex_unlock(lock);
	return NULL;
}

/* The case would see one: a thread of the program's own that blocks nothing. */
static void see_planted(struct check *c)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;
	char name[32] = "";
	int number = 0;

	(void)pthread_mutex_lock(&lock);
	if (check_that(c, pthread_create(&thread, NULL, sleep_on_lock, &lock) == 0, "no thread")) {
		check_that(c, count_takers(c, name, &number) == 1,
		           "a thread that blocks nothing was not found");
		(void)pthread_mutex_unlock(&lock);
		(void)pthread_join(thread, NULL);
	}
}

/* Whatever of the library has threads. */
struct crew {
	struct ndx_adapter *adapter;
	struct ndx_receive_loop *loop;
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
};

static enum ndx_status open_nobody(void *arg, struct ndx_session *session,
                                   struct ndx_session_resources *resources)
{
	(void)arg;
	(void)session;
	(void)resources;
	return NDX_E_NOT_SUPPORTED;
}

static bool crew_up(struct check *c, struct crew *crew)
{
	struct ndx_negotiation_server_attr attr;

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &crew->variant;
	attr.variant_count = 1;
	attr.events = (struct ndx_negotiation_server_events){.open = open_nobody};
	return check_status(c, ndx_adapter_open(c->world->places[0].uri, &crew->adapter), NDX_OK,
	                    "open") &&
	       check_status(c, ndx_receive_loop_create(NULL, &crew->loop), NDX_OK, "a loop") &&
	       check_status(c, ndx_negotiation_create(&crew->negotiation), NDX_OK, "a framework") &&
	       check_status(c, ndx_negotiation_register(crew->negotiation, &same_plugin), NDX_OK,
	                    "register") &&
	       check_status(c,
	                    ndx_negotiation_get_variant(crew->negotiation, "same", "as-it-is", NULL,
	                                                0, &crew->variant),
	                    NDX_OK, "get_variant") &&
	       check_status(c, ndx_negotiation_server_create(&attr, &crew->server), NDX_OK,
	                    "a server");
}

static void crew_down(struct check *c, struct crew *crew)
{
	ndx_negotiation_server_close(crew->server);
	ndx_variant_close(crew->variant);
	if (crew->negotiation)
		check_status(c, ndx_negotiation_close(crew->negotiation), NDX_OK,
		             "close the framework");
	ndx_receive_loop_close(crew->loop);
	ndx_adapter_close(crew->adapter);
}

void case_process_threads_take_no_signals(struct check *c)
{
	struct crew crew = {NULL};
	char name[32] = "";
	int number = 0;
	struct pair *p = pair_up(c, NULL);

	if (p && message_passes(&p->a, &p->b, 1000) && crew_up(c, &crew)) {
		const unsigned takers = count_takers(c, name, &number);

		check_that(c, takers == 0, "%u threads take signals: %s takes signal %d", takers,
		           name, number);
		see_planted(c);
	}
	crew_down(c, &crew);
}

/* ---- the control thread ---- */

enum { NAMED_MAX = 8, URI_ROOM = 256 };

/* The threads of the process with a name; says how many, and the numbers of the first. */
static unsigned find_named(struct check *c, const char *name, long tids[NAMED_MAX])
{
	DIR *all = opendir("/proc/self/task");
	unsigned count = 0;
	struct dirent *entry;
	struct thread_state t;

	if (!all) {
		check_fail(c, "/proc/self/task cannot be read");
		return 0;
	}
	while ((entry = readdir(all)) != NULL) {
		if (entry->d_name[0] == '.' || !read_thread(entry->d_name, &t) ||
		    strcmp(t.name, name) != 0)
			continue;
		if (count < NAMED_MAX)
			tids[count] = strtol(entry->d_name, NULL, 10);
		count++;
	}
	(void)closedir(all);
	return count;
}

/* A thread that was joined is in /proc for a moment more. */
static void check_none_is_left(struct check *c, const char *name)
{
	const uint64_t deadline = now_ms() + WAIT_MS;
	long tids[NAMED_MAX];

	while (find_named(c, name, tids) > 0 && now_ms() < deadline)
		(void)poll(NULL, 0, 1);
	check_that(c, find_named(c, name, tids) == 0, "a thread \"%s\" is left", name);
}

/* The URI of the world's first adapter, with more keys. */
static const char *uri_with(struct check *c, const char *keys, char uri[URI_ROOM])
{
	const char *own = c->world->places[0].info.uri;

	(void)snprintf(uri, URI_ROOM, "%s%c%s", own, strchr(own, '?') != NULL ? '&' : '?', keys);
	return uri;
}

static void check_thread_runs_on(struct check *c, const char *name, const cpu_set_t *expected)
{
	long tids[NAMED_MAX] = {0};
	cpu_set_t cpus;

	check_that(c, find_named(c, name, tids) == 1, "not one thread \"%s\"", name);
	if (check_over(c))
		return;
	CPU_ZERO(&cpus);
	check_that(c, sched_getaffinity((pid_t)tids[0], sizeof(cpus), &cpus) == 0,
	           "no affinity of thread %ld", tids[0]);
	check_that(c, CPU_EQUAL(&cpus, expected), "\"%s\" runs on %d processors, asked for %d",
	           name, CPU_COUNT(&cpus), CPU_COUNT(expected));
}

/* Write the processors as a list without ranges; only as many as there is room for are left. */
static void write_list(cpu_set_t *cpus, char *text, size_t size)
{
	size_t used = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (used + sizeof("1023,") > size)
			CPU_CLR(cpu, cpus);
		if (CPU_ISSET(cpu, cpus))
			used += (size_t)snprintf(text + used, size - used, "%s%d",
			                         used > 0 ? "," : "", cpu);
	}
}

static void open_named_on(struct check *c, const char *name, cpu_set_t *cpus)
{
	struct ndx_adapter *adapter = NULL;
	char uri[URI_ROOM];
	char keys[64];
	char list[32];

	write_list(cpus, list, sizeof(list));
	(void)snprintf(keys, sizeof(keys), "thread=%s&cpus=%s", name, list);
	check_status(c, ndx_adapter_open(uri_with(c, keys, uri), &adapter), NDX_OK, uri);
	check_thread_runs_on(c, name, cpus);
	ndx_adapter_close(adapter);
	check_none_is_left(c, name);
}

void case_process_control_thread_has_name_and_processors(struct check *c)
{
	static const char name[] = "named-by-case";
	struct ndx_adapter *adapter = NULL;
	long tids[NAMED_MAX];
	unsigned before = find_named(c, "ndx-ctl", tids);
	char uri[URI_ROOM];
	cpu_set_t own;
	cpu_set_t one;

	check_that(c, sched_getaffinity(0, sizeof(own), &own) == 0, "no affinity of its own");
	check_status(c, ndx_adapter_open(c->world->places[0].uri, &adapter), NDX_OK, "open");
	check_that(c, find_named(c, "ndx-ctl", tids) == before + 1, "no thread \"ndx-ctl\" more");
	ndx_adapter_close(adapter);
	adapter = NULL;
	check_status(c, ndx_adapter_open(uri_with(c, "thread=named-by-case", uri), &adapter),
	             NDX_OK, uri);
	check_thread_runs_on(c, name, &own);
	ndx_adapter_close(adapter);
	check_none_is_left(c, name);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
		if (CPU_ISSET(cpu, &own))
			CPU_SET(cpu, &one);
	}
	open_named_on(c, name, &one);
	open_named_on(c, name, &own);
}

void case_process_control_thread_refuses_what_cannot_be(struct check *c)
{
	static const struct {
		const char *keys;
		const char *part;
	} bad[] = {
		{"thread=refused-by-case&cpus=1023", "processor 1023 does not exist"},
		{"thread=refused-by-case&cpus=0-1023", "does not exist"},
		{"thread=refused-by-case&cpus=1024", "cannot be \"1024\""},
		{"thread=refused-by-case&cpus=3-2", "cannot be \"3-2\""},
		{"thread=refused-by-case&cpus=0,", "cannot be \"0,\""},
		{"thread=refused-by-case&cpus=-1", "cannot be \"-1\""},
		{"thread=refused-by-case&cpus=all", "cannot be \"all\""},
		{"thread=one-byte-too-long", "at most 15 bytes"},
	};
	char uri[URI_ROOM];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ndx_adapter *adapter = NULL;

		check_status(c, ndx_adapter_open(uri_with(c, bad[i].keys, uri), &adapter),
		             NDX_E_INVALID_CONFIG, uri);
		check_that(c, strstr(ndx_last_error(), bad[i].part) != NULL,
		           "%s: \"%s\" does not say \"%s\"", uri, ndx_last_error(), bad[i].part);
		check_that(c, adapter == NULL, "the output of a failed open was touched");
	}
	check_none_is_left(c, "refused-by-case");
}

/* ---- descriptors ---- */

enum { FDS_MOST = 1024 };

/* Which descriptors a program would inherit that is started now. */
static void find_inherited(struct check *c, bool inherited[FDS_MOST])
{
	for (int fd = 0; fd < FDS_MOST; fd++) {
		const int flags = fcntl(fd, F_GETFD);

		inherited[fd] = flags >= 0 && !(flags & FD_CLOEXEC);
	}
	check_that(c, fcntl(FDS_MOST, F_GETFD) < 0, "there are more than %d descriptors", FDS_MOST);
}

static void check_inherited(struct check *c, const bool before[FDS_MOST], const char *when)
{
	bool now[FDS_MOST];
	char path[64];
	char what[128];

	find_inherited(c, now);
	for (int fd = 0; fd < FDS_MOST; fd++) {
		ssize_t length;

		if (!now[fd] || before[fd])
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, what, sizeof(what) - 1);
		what[length > 0 ? length : 0] = '\0';
		check_fail(c, "%s: descriptor %d, %s, lacks FD_CLOEXEC", when, fd, what);
	}
}

/* Adapters of its own, since those of the world were opened before. */
void case_process_descriptors_are_not_inherited(struct check *c)
{
	struct ndx_adapter *own[2] = {NULL, NULL};
	bool before[FDS_MOST];
	struct side_attr attr[2];
	struct pair *p;

	find_inherited(c, before);
	for (size_t i = 0; i < 2; i++) {
		side_attr_init(&attr[i]);
		check_status(c, ndx_adapter_open(c->world->places[i].uri, &own[i]), NDX_OK, "open");
		attr[i].adapter = own[i];
	}
	check_inherited(c, before, "adapters are open");
	p = check_over(c) ? NULL : pair_open(c, &attr[0], &attr[1]);
	check_inherited(c, before, "it listens");
	if (p && pair_ask(p)) {
		check_inherited(c, before, "a request has come");
		if (pair_answer(p) && pair_complete(p) && message_passes(&p->a, &p->b, 1000))
			check_inherited(c, before, "it is connected");
		(void)pair_disconnect(p);
	}
	check_inherited(c, before, "it was disconnected");
	pair_close_all(c);
	ndx_adapter_close(own[0]);
	ndx_adapter_close(own[1]);
}
