/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the session manager share.
 *
 * The loop thread of the framework's engine decides what a managed session does next; the program's
 * callbacks, and what may block, are tasks of the engine's pool, one at a time for each session.
 * Another thread that wants something of a session sets a flag and posts `look`.
 */
#ifndef NEGOTIATION_MANAGER_H
#define NEGOTIATION_MANAGER_H

#include <pthread.h>

#include <ndx/session_manager.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/list.h>
#include <ndx/spi/loop.h>
#include "engine.h"

/* Where a managed session is; what the program sees of it is `state`. */
enum managed_at {
	MANAGED_AT_NEW,     /* `look` is to begin */
	MANAGED_AT_QUEUE,   /* in `ready` of the manager */
	MANAGED_AT_OBJECTS, /* the task `provide` */
	MANAGED_AT_SESSION, /* the session's call is in flight */
	MANAGED_AT_LIFE,    /* up; the task that tells so may be running */
	MANAGED_AT_END,     /* the task that ends an attempt, a life, or everything */
	MANAGED_AT_PAUSE,   /* the timer is set */
	MANAGED_AT_REST,    /* over */
};

enum managed_flag {
	MANAGED_CANCEL = 1,   /* the program has cancelled the session; never cleared */
	MANAGED_REPORTED = 2, /* the program says that the life is over, see `reported` */
	MANAGED_GONE = 4,     /* the connector says so */
	MANAGED_LOST = 8,     /* there is no connector, and the session has lost its transport */
};

struct managed {
	struct ndxp_list node; /* under the manager's lock */
	struct ndx_session_manager *manager;
	uint64_t id;
	void *context;
	struct ndx_session_attr *attr; /* the program's, of its size, with copies of the servers */
	char **servers;
	/* The loop thread's: */
	enum managed_at at;
	bool busy; /* a task is in the pool */
	bool cancelling;
	struct ndxp_list ready;
	struct ndxp_job look;
	struct ndxp_job last;
	struct ndxp_timer timer;
	uint64_t up_ns;                      /* when the life began */
	uint32_t pause_ms;                   /* before the next attempt */
	enum ndx_managed_event_kind verdict; /* the last event; NONE: it goes on */
	/* The task's while it is in the pool, else the loop thread's: */
	struct pool_task task;
	void (*work)(struct managed *m);
	ndxp_loop_fn *returned_to;
	struct ndxp_job returned;
	struct ndx_session *session;
	struct ndx_session_resources resources;
	uint32_t former_token; /* of the memory of the attempt before */
	bool had_memory;
	bool provided;
	bool lived;             /* the attempt reached the end of stage ready */
	enum ndx_status status; /* of the attempt or life that has just ended */
	enum ndx_error_layer layer;
	char text[256];
	struct ndx_overlapped run;
	struct ndx_overlapped gone;
	bool watches; /* `gone` was in flight when it was started */
	/* Under the manager's lock: */
	enum ndx_managed_state state;
	uint32_t flags;
	enum ndx_status reported;
	bool told_gone;  /* the callback of `gone` does not touch the session any more */
	uint32_t reason; /* enum ndx_disconnect_reason, with MANAGED_GONE */
	uint32_t life;
	uint32_t attempts;
	uint32_t failures;
	enum ndx_status shown_status;
	enum ndx_error_layer shown_layer;
	char shown_text[256];
	char server[128];
};

struct ndx_session_manager {
	struct ndx_session_manager_attr attr;
	struct engine *engine;
	struct ndxp_job pump;
	struct ndxp_job last;
	/* The loop thread's: */
	struct ndxp_list ready;
	uint32_t connecting;
	/* Under the lock: */
	pthread_mutex_t lock;
	pthread_cond_t change; /* `living` has become 0 */
	struct ndxp_list list; /* in the order of their numbers */
	uint64_t last_id;
	uint32_t living; /* sessions that are not over */
	bool closing;
	struct ndx_session_manager_stats stats;
	struct ndx_managed_event *events; /* a ring of attr.max_events */
	uint64_t first_event;
	uint64_t end_event;
	struct ndx_managed_event *wanted; /* where the pending request wants the next event */
	struct ndx_overlapped *wanted_ov; /* NULL: no request */
};

/* manager_events.c. On the pool: tell the program. */
void manager_tell(struct managed *m, struct ndx_managed_event *e);
/* Complete a request for an event as cancelled. */
void manager_drop_request(struct ndx_session_manager *manager);

/* manager_life.c; loop thread: jobs of a manager and of a session. */
void manager_pump(void *arg);
void managed_look(void *arg);
void managed_init(struct managed *m);

/* manager_work.c; on the pool. */
void managed_work(struct managed *m);
/* Any thread: whether this thread is in managed_work(), of any manager. */
bool manager_in_work(void);
void managed_provide(struct managed *m);
void managed_tell_up(struct managed *m);
void managed_end(struct managed *m);

#endif
