/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by client and server of ndx-negotiate. */
#ifndef NEGOTIATE_H
#define NEGOTIATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "limits.h"
#include "sample_both.h"
#include "sample_negotiation.h"
#include "sample_progress.h"
#include "sample_tls.h"

/**
 * Call before any other thread exists: from now on the first SIGINT or SIGTERM acts like
 * stop_now(). Returns an exit status.
 */
int stop_begin(void);
/** End both roles: waits give up, and the running session is cancelled. */
void stop_now(void);
/** Set once a stop was requested. */
const atomic_bool *stop_flag(void);
/** The session that a stop cancels; NULL: none. */
void stop_cancels(struct ndx_session *session);
/**
 * End the program as the received signal would have ended it; returns if no signal was received.
 */
void stop_by_signal(void);

/** The command line. */
struct negotiate_options {
	const char *adapter;  /* URI, or NULL for the environment's choice */
	const char *address;  /* server: where to listen; client: servers, separated by ',' */
	const char *variant;  /* PLUGIN/VARIANT; NULL: the variant of roce for the adapter */
	const char *settings; /* parameters of the variant */
	const char *plugins;
	const char *port_file;
	const char *control; /* server: path of the control socket, or NULL */
	struct sample_tls tls;
	struct limits limits; /* server */
	uint32_t messages;
	uint32_t size;
	uint32_t count; /* server: sessions to serve, 0: no limit */
	uint32_t timeout_ms;
	uint32_t keepalive_ms;
	uint32_t attempts;
	const char *json;
	bool history;
	bool verbose;
};

/** Waits check stop_flag() after each of these periods. */
#define WAIT_SLICE_MS 200u

/** Shared by all ends of the process. */
struct place {
	const char *who;
	const struct negotiate_options *options;
	struct ndx_adapter *adapter;
	struct ndx_adapter_info info;
	struct sample_negotiation negotiation;
};

/** Open adapter and variant. Like all functions below, returns an enum sample_exit. */
int place_open(struct place *place, const char *who, const struct negotiate_options *options);
void place_close(struct place *place);

/** One end of one connection. Members are NULL until created. */
struct end {
	const struct place *place;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_connector *connector;
	struct ndx_overlapped notify;
	uint8_t *memory; /* three messages: out, in, and one that the peer may read and write */
	uint32_t size;
	struct sample_progress progress; /* the client's; all 0: none */
};

int end_make(struct end *end, const struct place *place);
void end_drop(struct end *end);
struct ndx_memory_description end_describe(const struct end *end);

/** Request the disconnect indication; wait for it; disconnect. */
int end_watch(struct end *end);
enum ndx_disconnect_reason end_reason(struct end *end);
int end_disconnect(struct end *end);

/** Counters of a transfer. */
struct tally {
	uint32_t messages, writes, reads, wrong;
};

/** Post the server's first receive, before stage ready ends. */
int transfer_prepare(struct end *end);
int transfer_as_client(struct end *end, const struct ndx_memory_description *peer,
                       struct tally *tally);
int transfer_as_server(struct end *end, struct tally *tally);

/** ndx-negotiate plugins; argv[0] is "plugins". Returns an enum sample_exit. */
int plugins_main(int argc, char **argv);

/** ndx-negotiate sessions; argv[0] is "sessions". Returns an enum sample_exit. */
int sessions_main(int argc, char **argv);

/** The control socket of a server: its clients get the server's snapshot. */
struct control;
int control_open(const char *path, struct ndx_negotiation_server *server, struct control **out);
/** Before the server is closed. NULL is a no-op. */
void control_close(struct control *control);

int client_run(const struct negotiate_options *options);

/** @p ready may be NULL. */
int server_run(const struct negotiate_options *options, sample_ready_fn *ready, void *arg);

#endif
