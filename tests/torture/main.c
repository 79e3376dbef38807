/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-torture: rounds, one after the other, until one fails. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "connect.h"
#include "drive.h"
#include "model.h"
#include "nursery.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_progress.h"
#include "sample_stop.h"
#include "setup.h"

#define WHO "ndx-torture"

enum { BYSTANDER_S = 100, HANG_S = 60, LINGER_MS = 50 };
enum { FIRST_PROGRESS = 10, PROGRESS_EVERY = 1000 }; /* rounds */

struct options {
	const char *uris[SIDES];
	uint64_t rounds;
	uint64_t seed;
	bool replay;
	bool deaths;
	bool callbacks;
	const char *other_adapter;
	const char *json;
	bool quiet;
};

struct counts {
	uint64_t rounds;
	uint64_t connections;
	uint64_t requests;
	uint64_t messages;
	uint64_t aborted;
	uint64_t processes;
	uint64_t killed;
	uint64_t forked;
	uint64_t known_after; /* ns: the longest */
	uint64_t longest;     /* ns: of a round */
};

struct run {
	struct options options;
	struct round *round; /* shared with the children */
	struct stock stock;
	struct place places[SIDES];
	struct place other_adapter; /* adapter NULL: none */
	struct means means;
	struct mailbox mail;
	struct nursery nursery;
	struct counts counts;
	struct counts told; /* those of whole rounds; behind the lock of sample_stop */
	uint64_t began;
	FILE *json; /* NULL: none, or it was written */
	pthread_t watchdog;
	uint64_t deadline; /* atomic; 0: nothing to watch, 1: end */
};

/* ---- the peer's process ---- */

static void wait_listening(struct round *round)
{
	while (__atomic_load_n(&round->listening, __ATOMIC_ACQUIRE) == 0) {
		trace_stop_if_failing(round);
		(void)poll(NULL, 0, 1);
	}
}

/* The peer's process ends without closing anything. */
static void depart(struct round *round, void *arg)
{
	(void)arg;
	while (__atomic_load_n(&round->child_may_go, __ATOMIC_ACQUIRE) == 0) {
		trace_stop_if_failing(round);
		(void)poll(NULL, 0, 1);
	}
	for (uint32_t i = 0; i < round->plan.conns; i++)
		model_peer_dies(&round->conns[i].ends[round->plan.child]);
	note(round, NULL, "the peer's process %s",
	     round->plan.fate == FATE_EXITS ? "exits" : "leaves");
#ifndef __SANITIZE_ADDRESS__ /* which would look for leaks where it cannot see */
	if (round->plan.fate == FATE_LEAVES)
		exit(0); /* NOLINT(concurrency-mt-unsafe): that is the question */
#endif
	_exit(0);
}

static bool departs(const struct plan *plan)
{
	return plan->fate == FATE_EXITS || plan->fate == FATE_LEAVES;
}

static void live(void *arg)
{
	struct run *run = arg;
	struct round *round = run->round;
	uint32_t side = round->plan.child;
	struct place place;

	if (ndx_port_create(&run->mail.port) != NDX_OK)
		fail(round, NULL, "no port in the peer's process");
	if (!place_open(&place, run->options.uris[side]))
		fail(round, NULL, "no adapter in the peer's process");
	setup_side(round, side, &place, &run->mail);
	wait_listening(round);
	connect_all(round);
	drive(round, departs(&round->plan) ? depart : NULL, run);
	teardown(round);
	ndx_adapter_close(place.adapter);
	ndx_port_close(run->mail.port);
	__atomic_store_n(&round->child_done, 1, __ATOMIC_RELEASE);
}

/* Kill it, stop it or let it go; its status then. */
static int take_down(struct run *run)
{
	struct round *round = run->round;
	enum fate fate = round->plan.fate;

	note(round, NULL, "the peer's process is %s",
	     fate == FATE_KILLED ? "killed" : (departs(&round->plan) ? "let go" : "stopped"));
	if (departs(&round->plan)) {
		__atomic_store_n(&round->child_may_go, 1, __ATOMIC_RELEASE);
		return nursery_wait(&run->nursery);
	}
	for (uint32_t i = 0; i < round->plan.conns; i++)
		model_peer_dies(&round->conns[i].ends[round->plan.child]);
	nursery_signal(&run->nursery, fate == FATE_KILLED ? SIGKILL : SIGSTOP);
	return nursery_wait(&run->nursery); /* a signal takes its time */
}

static void strike(struct round *round, void *arg)
{
	struct run *run = arg;
	enum fate fate = round->plan.fate;
	bool ended;
	int status;

	if (fate == FATE_LIVES)
		return;
	status = take_down(run);
	note(round, NULL, "that is so: status 0x%x", (unsigned)status);
	ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (ended && !departs(&round->plan))
		return; /* it was faster */
	if (!ended && !(fate == FATE_KILLED && WIFSIGNALED(status)) &&
	    !(fate == FATE_STOPPED && WIFSTOPPED(status)))
		fail(round, NULL, "the peer's process has status 0x%x", (unsigned)status);
	for (uint32_t i = 0; i < round->plan.conns; i++)
		model_peer_is_dead(&round->conns[i].ends[round->plan.child]);
	run->counts.killed++;
}

/* What was forked, by us or by the peer's process, ends with its round. */
static void bury_forked(struct round *round)
{
	pid_t pid = (pid_t)__atomic_load_n(&round->forked, __ATOMIC_ACQUIRE);

	if (pid <= 0)
		return;
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static void bury(struct run *run)
{
	struct round *round = run->round;
	int status;

	run->counts.processes++;
	if (run->nursery.child == 0) /* it is buried already */
		return;
	if (round->plan.fate == FATE_STOPPED)
		nursery_signal(&run->nursery, SIGKILL);
	status = nursery_wait(&run->nursery);
	if (round->plan.fate == FATE_LIVES && status != 0)
		fail(round, NULL, "the peer's process ended with status 0x%x", (unsigned)status);
}

/* ---- rounds ---- */

static uint64_t seed_of(const struct options *options, uint64_t number)
{
	uint64_t state = options->seed + number * UINT64_C(0x632be59bd9b4e019);

	return options->replay || number == 0 ? options->seed : random_next(&state);
}

static void begin_trace(struct run *run, uint64_t number)
{
	struct trace *t = &run->round->trace;
	const struct options *o = &run->options;

	t->count = 0;
	t->began = now_ns();
	t->all = o->replay;
	(void)snprintf(t->repeat, sizeof(t->repeat),
	               "ndx-torture '%s'%s%s%s --seed %llu --rounds 1%s%s%s%s%s --replay",
	               o->uris[0], o->uris[1] != o->uris[0] ? " '" : "",
	               o->uris[1] != o->uris[0] ? o->uris[1] : "",
	               o->uris[1] != o->uris[0] ? "'" : "", (unsigned long long)seed_of(o, number),
	               o->deaths ? " --kill" : "", o->callbacks ? " --callbacks" : "",
	               o->other_adapter ? " --in '" : "", o->other_adapter ? o->other_adapter : "",
	               o->other_adapter ? "'" : "");
}

static void count(struct run *run)
{
	struct round *round = run->round;

	for (uint32_t i = 0; i < round->plan.conns; i++) {
		for (uint32_t side = 0; side < SIDES; side++) {
			const struct end *e = &round->conns[i].ends[side];

			run->counts.requests += e->initiator.posted + e->receive.posted;
			run->counts.messages += e->received;
			run->counts.aborted += e->outcome == NDX_E_CONNECTION_ABORTED;
		}
		run->counts.connections++;
	}
	if (round->known_after > run->counts.known_after)
		run->counts.known_after = round->known_after;
}

static void run_round(struct run *run, uint64_t number)
{
	struct round *round = run->round;
	uint8_t *memory;

	if (round == NULL)
		return;
	round->number = number;
	plan_make(&round->plan, seed_of(&run->options, number), &run->means);
	sample_stop_lock(); /* a signal prints how to repeat the round */
	begin_trace(run, number);
	sample_stop_unlock();
	memory = stock_take(&run->stock, round, setup_memory(&round->plan));
	setup_round(round, memory);
	round->other_adapter = run->other_adapter.adapter;
	if (round->plan.process && !nursery_start(&run->nursery))
		fail(round, NULL, "no process for the peer");
	for (uint32_t side = 0; side < SIDES; side++) {
		if (!round->plan.process || round->plan.child != side)
			setup_side(round, side, &run->places[side], &run->mail);
	}
	wait_listening(round);
	connect_all(round);
	drive(round, round->plan.process ? strike : NULL, run);
	if (round->plan.process)
		bury(run);
	teardown(round);
	for (uint32_t i = 0; i < round->plan.conns; i++)
		model_balance(&round->conns[i]);
	bury_forked(round);
	run->counts.forked += round->forked != 0;
	count(run);
	stock_give_back(&run->stock, round);
}

static void *watch(void *arg)
{
	struct run *run = arg;
	uint64_t deadline;

	while ((deadline = __atomic_load_n(&run->deadline, __ATOMIC_ACQUIRE)) != 1) {
		if (deadline != 0 && now_ns() > deadline) {
			trace_print_threads();
			fail(run->round, NULL, "it hangs: the round takes more than %d s", HANG_S);
		}
		(void)poll(NULL, 0, 100);
	}
	return NULL;
}

/* ---- results ---- */

static void print_results(const struct run *run, unsigned failures)
{
	const struct counts *c = &run->told;
	const double seconds = (double)(now_ns() - run->began) / 1e9;

	(void)printf("# %llu connections, %llu requests, %llu messages, %llu aborted ends, "
	             "%llu peer processes, %llu of them killed, stopped or gone, %llu forked\n",
	             (unsigned long long)c->connections, (unsigned long long)c->requests,
	             (unsigned long long)c->messages, (unsigned long long)c->aborted,
	             (unsigned long long)c->processes, (unsigned long long)c->killed,
	             (unsigned long long)c->forked);
	if (c->known_after > 0)
		(void)printf("# the last survivor knew of a death after %.1f ms\n",
		             (double)c->known_after / 1e6);
	(void)printf("%llu rounds, %u failures, %.1f s, %.2f ms a round, the longest %.0f ms\n",
	             (unsigned long long)c->rounds, failures, seconds,
	             c->rounds > 0 ? 1e3 * seconds / (double)c->rounds : 0.0,
	             (double)c->longest / 1e6);
	(void)fflush(stdout);
}

static json_t *results_json(const struct run *run, unsigned failures)
{
	const struct counts *c = &run->told;

	return json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:i, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "adapter",
		run->options.uris[0], "adapter2", run->options.uris[1], "repeat",
		run->round->trace.repeat, "rounds_wanted", (json_int_t)run->options.rounds,
		"rounds", (json_int_t)c->rounds, "failures", (int)failures, "seconds",
		(double)(now_ns() - run->began) / 1e9, "connections", (json_int_t)c->connections,
		"requests", (json_int_t)c->requests, "messages", (json_int_t)c->messages, "aborted",
		(json_int_t)c->aborted, "processes", (json_int_t)c->processes, "killed",
		(json_int_t)c->killed, "forked", (json_int_t)c->forked);
}

/* Locked. Returns the exit status. */
static int tell_results(struct run *run, unsigned failures, int rc)
{
	FILE *const out = run->json;

	run->json = NULL;
	print_results(run, failures);
	return sample_json_end(WHO, out, out != NULL ? results_json(run, failures) : NULL, rc);
}

/* A signal came. */
static void tell_so_far(void *arg)
{
	struct run *run = arg;

	(void)printf("# ended by a signal in round %llu of %llu, which begins again with: %s\n",
	             (unsigned long long)run->told.rounds + 1,
	             (unsigned long long)run->options.rounds, run->round->trace.repeat);
	sample_json_error("ended by a signal");
	(void)tell_results(run, 0, SAMPLE_EXIT_OK);
}

static void tell_failure(void *arg)
{
	sample_stop_lock();
	sample_json_error("a round failed");
	(void)tell_results(arg, 1, SAMPLE_EXIT_FAILED);
}

static void run_all(struct run *run)
{
	const struct options *o = &run->options;
	struct sample_progress progress;

	sample_progress_begin(&progress, WHO, "rounds", o->rounds > 0 ? o->rounds : 1, !o->quiet);
	for (uint64_t i = 0; i < o->rounds; i++) {
		uint64_t start = now_ns();

		__atomic_store_n(&run->deadline, start + HANG_S * UINT64_C(1000000000),
		                 __ATOMIC_RELEASE);
		run_round(run, i);
		if (now_ns() - start > run->counts.longest)
			run->counts.longest = now_ns() - start;
		run->counts.rounds = i + 1;
		sample_stop_lock();
		run->told = run->counts;
		sample_stop_unlock();
		if (i + 1 == FIRST_PROGRESS || (i + 1) % PROGRESS_EVERY == 0) {
			sample_progress_wipe(&progress);
			(void)printf("# %llu rounds\n", (unsigned long long)i + 1);
		}
		(void)fflush(stdout);
		sample_progress_show(&progress, i + 1);
	}
	sample_progress_wipe(&progress);
	__atomic_store_n(&run->deadline, 1, __ATOMIC_RELEASE);
	(void)poll(NULL, 0, LINGER_MS); /* for a write to memory that comes late */
	stock_watch(&run->stock, run->round);
}

/* ---- the program ---- */

static const char about[] =
	"Random programs on both sides of connections, judged by a model of the contract.\n"
	"Side A of every connection is at URI, side B at URI2, or at the same open adapter\n"
	"without it.";

static const char details[] =
	"SIGINT and SIGTERM print the summary so far, and the JSON, and end the program (130 and\n"
	"143 for a shell).\n\n"
	"Exit status: 0 no round failed, 1 a round failed, which is described with the\n"
	"command that repeats it, or no memory or process, 2 command line, 3 an adapter could\n"
	"not be opened.";

static const char examples[] = "A thousand rounds in one process, about 10 s\n"
			       "  ndx-torture loop\n"
			       "Ten thousand over TCP in which one side dies each time\n"
			       "  ndx-torture 'ofi:tcp?iface=lo' --kill --rounds 10k\n"
			       "A round that failed again, with all operations\n"
			       "  ndx-torture loop --seed 4711 --rounds 1 --replay";

static bool parse(struct options *o, int argc, char **argv, int *code)
{
	const struct sample_option options[] = {
		{"--rounds", "N", "how many (1000)", .wide_number = &o->rounds},
		{"--seed", "S",
	         "of the first round, the others follow from it (chosen and printed)",
	         .wide_number = &o->seed},
		{"--kill", NULL,
	         "in every round one side is another process, which is killed at some time, or "
	         "exits without closing anything",
	         .flag = &o->deaths},
		{"--callbacks", NULL, "in every round everything is called inside callbacks",
	         .flag = &o->callbacks},
		{"--in", "URI", "some of them are those of this adapter, which has no part in it",
	         .text = &o->other_adapter},
		{"--replay", NULL,
	         "every round has the seed S itself; prints the operations as they happen",
	         .flag = &o->replay},
		SAMPLE_ROW_JSON(o->json),
		SAMPLE_ROW_QUIET(o->quiet),
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "URI [URI2] [options]",
		.about = about,
		.details = details,
		.examples = examples,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 2,
	};
	size_t operands;

	o->rounds = 1000;
	o->seed = now_ns() ^ (uint64_t)getpid() << 32;
	if (!sample_parse(&program, argc, argv, &operands, code))
		return false;
	if (operands == 0) {
		*code = sample_usage(&program, "which URI?");
		return false;
	}
	o->uris[0] = argv[1];
	o->uris[1] = operands == 2 ? argv[2] : argv[1];
	return true;
}

static bool map(struct run *run)
{
	size_t size = (sizeof(struct round) + 4095) & ~(size_t)4095;
	uint8_t *at = mmap(NULL, size + stock_size(), PROT_READ | PROT_WRITE,
	                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return false;
	run->round = (struct round *)(void *)at;
	stock_init(&run->stock, at + size);
	return run->round != NULL;
}

/*
 * Software RoCE executes a bind again when a send before it is tried again, and fails at it: the
 * queue pair breaks. Behind a fence it may forget to go on: nothing that was posted ever ends,
 * though no side did anything wrong (docs/verbs.md).
 */
static bool is_sound(const struct ndx_adapter_info *info)
{
	if (strcmp(info->provider, "verbs") == 0)
		return strncmp(info->device, "rxe", 3) != 0;
	if (strcmp(info->provider, "ofi") == 0 && strcmp(info->device, "verbs") == 0)
		return info->vendor_id != 0; /* libfabric does not name the device */
	return true;
}

static void find_means(struct run *run)
{
	const struct ndx_adapter_info *a = &run->places[0].info;
	const struct ndx_adapter_info *b = &run->places[1].info;
	uint64_t both = a->capabilities & b->capabilities;

	run->means.processes = strcmp(a->provider, "loop") != 0 && strcmp(b->provider, "loop") != 0;
	run->means.deaths = run->options.deaths;
	run->means.callbacks = run->options.callbacks;
	run->means.other_adapter = run->other_adapter.adapter != NULL;
	/* two stacks that connect to each other do so without shared receive queues */
	run->means.srq = (both & NDX_CAP_SRQ) != 0 && strcmp(a->provider, b->provider) == 0;
	run->means.fences = is_sound(a) && is_sound(b);
	run->means.windows = (both & NDX_CAP_MEMORY_WINDOW) != 0 && is_sound(a) && is_sound(b);
	run->means.inline_size = a->max_inline_data_size < b->max_inline_data_size
	                                 ? a->max_inline_data_size
	                                 : b->max_inline_data_size;
	run->means.sge =
		a->max_receive_sge < b->max_receive_sge ? a->max_receive_sge : b->max_receive_sge;
}

/* The program that a forked process became: it has nothing to do with anything. */
static int bystand(void)
{
	(void)signal(SIGINT, SIG_DFL); /* the peers' processes ignore them */
	(void)signal(SIGTERM, SIG_DFL);
	(void)poll(NULL, 0, BYSTANDER_S * 1000);
	return 0;
}

/* With adapters that are open. Returns an exit status. */
static int torment(struct run *run)
{
	int rc;

	find_means(run);
	if (run->options.deaths && !run->means.processes) {
		(void)fputs(WHO ": --kill: no other process reaches this adapter\n", stderr);
		return SAMPLE_EXIT_USAGE;
	}
	run->began = now_ns();
	trace_on_failure(tell_failure, run);
	rc = sample_stop_with(WHO, tell_so_far, run);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	if (pthread_create(&run->watchdog, NULL, watch, run) != 0)
		return SAMPLE_EXIT_FAILED;
	run_all(run);
	(void)pthread_join(run->watchdog, NULL);
	sample_stop_lock(); /* for good: a signal has nothing left to tell */
	return tell_results(run, 0, SAMPLE_EXIT_OK);
}

static bool open_places(struct run *run)
{
	const struct options *o = &run->options;

	if (!place_open(&run->places[0], o->uris[0]))
		return false;
	run->places[1] = run->places[0];
	if (o->uris[1] != o->uris[0] && !place_open(&run->places[1], o->uris[1]))
		return false;
	return o->other_adapter == NULL || place_open(&run->other_adapter, o->other_adapter);
}

static int run_program(struct run *run)
{
	int rc = SAMPLE_EXIT_NO_ADAPTER;

	/* what a peer's process forked is ours when that has died */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* processes before threads */
	if (!map(run)) {
		(void)fputs(WHO ": no memory\n", stderr);
		return SAMPLE_EXIT_FAILED;
	}
	trace_log_library(run->round);
	if (!nursery_open(&run->nursery, live, run) || ndx_port_create(&run->mail.port) != NDX_OK) {
		(void)fputs(WHO ": no process or descriptor\n", stderr);
		return SAMPLE_EXIT_FAILED;
	}
	if (open_places(run))
		rc = torment(run);
	if (run->places[1].adapter != run->places[0].adapter)
		ndx_adapter_close(run->places[1].adapter);
	ndx_adapter_close(run->places[0].adapter);
	ndx_adapter_close(run->other_adapter.adapter);
	ndx_port_close(run->mail.port);
	nursery_close(&run->nursery);
	return rc;
}

int main(int argc, char **argv)
{
	static struct run run = {
		.mail = {.lock = PTHREAD_MUTEX_INITIALIZER}}; /* the children's, too */
	int code;

	if (argc == 2 && strcmp(argv[1], "--bystander") == 0)
		return bystand();
	if (!parse(&run.options, argc, argv, &code))
		return code;
	code = sample_json_open(WHO, run.options.json, &run.json);
	if (code != SAMPLE_EXIT_OK)
		return code;
	(void)printf("# ndx-torture %s%s%s: seed %llu, %llu rounds\n", run.options.uris[0],
	             run.options.uris[1] != run.options.uris[0] ? " " : "",
	             run.options.uris[1] != run.options.uris[0] ? run.options.uris[1] : "",
	             (unsigned long long)run.options.seed, (unsigned long long)run.options.rounds);
	(void)fflush(stdout);
	code = run_program(&run);
	return sample_end(WHO, sample_json_end(WHO, run.json, NULL, code));
}
