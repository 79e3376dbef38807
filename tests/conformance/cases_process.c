/* SPDX-License-Identifier: BSD-2-Clause */
/* process.*: what the library does to the process that it is in. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
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
