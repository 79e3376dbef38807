/* SPDX-License-Identifier: BSD-2-Clause */
/* One of everything, for a call in a callback. What a call closes, it sets to NULL. */
#ifndef TESTS_CALLBACKS_SCENE_H
#define TESTS_CALLBACKS_SCENE_H

#include <ndx/ndx.h>
#include <ndx/reassembly.h>
#include <ndx/negotiation_server.h>
#include <ndx/session.h>

/* What takes longer hangs. */
#define PATIENCE_MS 20000u
#define BYTES 4096u

struct scene {
	struct ndx_adapter *own; /* of all below, unless said */
	struct ndx_adapter *far;
	struct sockaddr_storage address; /* of the listener */
	socklen_t address_len;
	struct sockaddr_storage far_address; /* of the far listener */
	socklen_t far_address_len;
	struct ndx_cq *cq;
	struct ndx_srq *srq; /* NULL: the stack has none; as `mw` */
	struct ndx_mw *mw;
	struct ndx_mr *mr; /* registered */
	struct ndx_mr *raw_mr;
	struct ndx_qp *qp; /* unconnected */
	struct ndx_connector *connector;
	struct ndx_listener *listener;
	struct ndx_listener *deaf; /* not bound */
	struct ndx_qp *up_qp;      /* connected */
	struct ndx_connector *up;
	struct ndx_overlapped pending; /* a notification of `cq` */
	struct ndx_overlapped ov;      /* for the call */
	struct ndx_port *port;
	struct ndx_receive_loop *loop;
	struct ndx_receiver *receiver; /* running */
	struct ndx_receiver *idle_receiver;
	struct ndx_sender *sender; /* connected */
	struct ndx_sender *idle_sender;
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
	struct ndx_session *several;         /* of two queue pairs */
	struct ndx_session_manager *manager; /* without sessions */
	struct ndx_reassembly *reassembly;
	/* far ends */
	struct ndx_listener *far_listener;
	struct ndx_cq *far_cq;
	struct ndx_qp *far_qp;
	struct ndx_connector *far_up;
	struct ndx_receiver *far_receiver;
	struct ndx_sender *far_sender;
	unsigned char memory[2 * BYTES];
};

/* False: something could not be made; it says what. */
bool scene_open(struct scene *s, const char *uri);
void scene_close(struct scene *s);

void receiver_attr(const struct scene *s, struct ndx_adapter *adapter,
                   struct ndx_receiver_attr *attr);
void reassembly_attr(struct ndx_reassembly_attr *attr);
void sender_attr(struct ndx_adapter *adapter, struct ndx_sender_attr *attr);

#endif
