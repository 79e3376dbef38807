/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault sweep: a script, a sequence of calls of the public interface by both sides of a connection,
 * is run again and again; the first time the first of the calls that can fail does, then the
 * second, until the script ends before it gets so far.
 *
 * A step is one call with its out parameters poisoned before and compared after. Returns true if
 * the script may go on. After a failure a script stops where it is (everything must be closable
 * from there), or, if it is stubborn, makes the same step once more, which must succeed.
 */
#ifndef TESTS_SWEEP_H
#define TESTS_SWEEP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/ndx.h>

#define SWEEP_MEMORY 4096u
#define SWEEP_OPS 24u
#define SWEEP_TEXT 600u
#define SWEEP_DEPTH 8u
#define SWEEP_LIST 4u /* entries of a list */
/* Nothing takes so long; a wait that does is a failure of the test. */
#define SWEEP_PATIENCE_MS 15000u

struct run;

/* One overlapped operation of a script. */
struct op {
	struct ndx_overlapped ov;
	const char *what;
	bool pending; /* begun, and its end was not seen */
};

struct side {
	struct run *run;
	const char *name;
	struct ndx_adapter *adapter;
	struct ndx_adapter_info info;
	/* the script's, closed by the runner; NULL: not there */
	struct ndx_cq *cq;
	struct ndx_srq *srq;
	struct ndx_mr *mr;
	struct ndx_mw *mw;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_listener *listener;
	unsigned char memory[SWEEP_MEMORY];
};

struct run {
	const char *uri; /* of the adapter that fails */
	const char *script;
	uint64_t nth;
	bool stubborn;
	struct side sides[2];
	struct side *active;
	struct side *passive;
	struct side *faulty; /* one of the two; NULL: memory is what fails */
	struct ndx_port *port;
	struct op ops[SWEEP_OPS];
	struct sockaddr_storage where; /* the passive side listens */
	socklen_t where_len;
	uint64_t random;
	/* the outcome */
	bool repeated;        /* the one repetition that a stubborn script has is used up */
	bool failed;          /* a step failed; the first one was: */
	char why[SWEEP_TEXT]; /* for people */
	bool wrong;           /* the library is at fault */
	char wrong_why[SWEEP_TEXT];
};

/* ---- what fails (faults.c) ---- */

/* Arm: the nth call, or allocation, from now on fails; 0: none. */
void faults_arm(struct run *r, uint64_t nth);
/* Has it happened? */
bool faults_struck(const struct run *r);
/* How many there were. */
uint64_t faults_counted(const struct run *r);
/* What the library was told to fail with; NDX_OK if it cannot be known. */
enum ndx_status faults_status(const struct run *r);
const char *faults_latest(const struct run *r);

/* ---- verdicts (steps.c) ---- */

/* The library did something that it must not do; the first such is kept. */
__attribute__((format(printf, 2, 3))) void sweep_wrong(struct run *r, const char *fmt, ...);
/* As sweep_wrong() unless `good`; returns it. */
__attribute__((format(printf, 3, 4))) bool sweep_check(struct run *r, bool good, const char *fmt,
                                                       ...);
/* A step ended with `st` and not as wanted. Is it to be made once more? */
bool sweep_again(struct run *r, const char *what, enum ndx_status st, enum ndx_status wanted);

/* ---- steps (steps.c, steps_work.c): see the calls that they are named after ---- */

bool step_cq(struct side *s, uint32_t depth);
bool step_srq(struct side *s, uint32_t depth, uint32_t threshold);
bool step_mr(struct side *s, uint32_t flags);
/* Not registered. */
bool step_mr_object(struct side *s);
bool step_mw(struct side *s);
bool step_qp(struct side *s);
bool step_connector(struct side *s);
bool step_bind(struct side *s);
bool step_listen(struct side *s);
bool step_get_fd(struct side *s, int *fd);
bool step_affinity(struct side *s);
bool step_resize(struct side *s, uint32_t depth);
bool step_modify(struct side *s, uint32_t depth, uint32_t threshold);
bool step_flush(struct side *s);
bool step_limits(struct side *s, uint32_t inbound, uint32_t outbound);
bool step_private_data(struct side *s, const char *expected);
bool step_addresses(struct side *s);

/* Begin; the operation, or NULL. */
struct op *step_register(struct side *s, void *buffer, size_t length, uint32_t flags);
struct op *step_deregister(struct side *s);
struct op *step_connect(struct side *s, const void *data, size_t len);
struct op *step_complete(struct side *s);
struct op *step_request(struct side *s);
struct op *step_accept(struct side *s, const void *data, size_t len);
struct op *step_notify_disconnect(struct side *s);
struct op *step_disconnect(struct side *s);
struct op *step_cq_notify(struct side *s, enum ndx_cq_notify_type type);
struct op *step_srq_notify(struct side *s);
bool step_reject(struct side *s, const void *data, size_t len);

/* Wait for the end of an operation, which is to be `wanted`; `op` may be NULL. */
bool step_wait(struct run *r, struct op *op, enum ndx_status wanted);
/* The same, but another one that fails ends the wait: this one then depends on it in vain. */
bool step_wait_either(struct run *r, struct op *op, enum ndx_status wanted, const struct op *with);

/* ---- the data path (steps_data.c) ---- */

/* Part of the side's memory; `at` is the offset. */
struct ndx_sge sweep_sge(const struct side *s, uint32_t at, uint32_t len);
void sweep_fill(struct side *s, uint32_t at, uint32_t len, unsigned char seed);
bool sweep_is_filled(struct side *s, uint32_t at, uint32_t len, unsigned char seed);
bool step_receive(struct side *s, uint32_t at, uint32_t len);
bool step_srq_receive(struct side *s, uint32_t at, uint32_t len);
/* Lists of `count` entries of `len` bytes each, from `at` on. What a failure leaves is posted
 * again, as the rest of the list. */
bool step_send_list(struct side *s, uint32_t at, uint32_t len, size_t count);
bool step_receive_list(struct side *s, uint32_t at, uint32_t len, size_t count);
bool step_srq_receive_list(struct side *s, uint32_t at, uint32_t len, size_t count);
bool step_send(struct side *s, uint32_t at, uint32_t len, uint32_t flags);
bool step_send_immediate(struct side *s, uint32_t at, uint32_t len, uint32_t immediate);
bool step_read(struct side *s, uint32_t at, uint32_t len, uint64_t remote, uint32_t token);
bool step_write(struct side *s, uint32_t at, uint32_t len, uint64_t remote, uint32_t token);
bool step_write_immediate(struct side *s, uint32_t at, uint32_t len, uint64_t remote,
                          uint32_t token, uint32_t immediate);
bool step_window(struct side *s, uint32_t at, uint32_t len, uint32_t flags);
bool step_invalidate(struct side *s);
/* Wait for `count` results, each of which has `status`. */
bool step_results(struct side *s, unsigned count, enum ndx_status status);
/* Take what is there, whatever it says. */
void sweep_take_rest(struct side *s);

/* ---- both sides together (pair.c) ---- */

/* Queues, memory and a queue pair. */
bool sweep_equip(struct side *s);
/* Both equipped, and connected; the listener stays. */
bool sweep_pair(struct run *r);
bool sweep_disconnect(struct run *r);
/* Join a thread that answers at the passive side. `cancel`: no request will come any more, so its
 * wait is cancelled, also a wait that begins only now. The same once a fault has struck, because
 * the active side may have had its answer before. */
void sweep_join(struct run *r, pthread_t thread, bool cancel);
/* The connection alone; both are equipped and the passive side listens. */
bool sweep_connect(struct run *r);
/* Close everything in an order that changes from run to run; look after what was in flight. */
void sweep_close(struct run *r);
/* Everything is closed: nothing may be in flight any more. */
void sweep_settle(struct run *r);
/* The status it ended with; NDX_PENDING: not in time, or `with` failed before. */
enum ndx_status sweep_await(struct run *r, struct op *op, const struct op *with);

/* ---- scripts (scripts_*.c) ---- */

struct script {
	const char *name;
	void (*play)(struct run *r);
	uint64_t needs;   /* OR of enum ndx_capability */
	bool memory_only; /* opens adapters of its own, which cannot be armed */
};

extern const struct script sweep_scripts[];

#define SWEEP_SCRIPT(name) void script_##name(struct run *r)
SWEEP_SCRIPT(open);
SWEEP_SCRIPT(objects);
SWEEP_SCRIPT(memory);
SWEEP_SCRIPT(connect);
SWEEP_SCRIPT(reject);
SWEEP_SCRIPT(decline);
SWEEP_SCRIPT(cancel);
SWEEP_SCRIPT(helpers);
SWEEP_SCRIPT(messages);
SWEEP_SCRIPT(lists);
SWEEP_SCRIPT(rdma);
SWEEP_SCRIPT(write_immediate);
SWEEP_SCRIPT(windows);
SWEEP_SCRIPT(shared);
SWEEP_SCRIPT(shared_list);
SWEEP_SCRIPT(notify);
SWEEP_SCRIPT(leave);
SWEEP_SCRIPT(cross);
SWEEP_SCRIPT(close_qp);
SWEEP_SCRIPT(close_connector);
SWEEP_SCRIPT(flush);
SWEEP_SCRIPT(receiver);

#endif
