/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends, each with an adapter of its own, and connections between them. */
#ifndef STAGE_H
#define STAGE_H

#include <ndx/ndx.h>

#include "figures.h"

/* What a side needs for all its connections. */
struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_mr *mr;
	uint8_t *memory;
};

struct stage {
	struct end ends[2]; /* A asks, B listens */
	struct ndx_listener *listener;
	struct sockaddr_storage address;
	socklen_t address_len;
};

/* One side of one connection. */
struct line {
	struct end *end;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped ov;     /* of connecting */
	struct ndx_overlapped notify; /* notify_disconnect */
	struct ndx_overlapped disc;   /* disconnect */
};

/* Everything here is false when it fails, and has said why. */
bool stage_open(struct stage *stage, const char *uri, size_t memory);
void stage_close(struct stage *stage);

/* A side that is not connected; the context comes back with its results. */
bool line_open(struct line *line, struct end *end, void *context);
void line_close(struct line *line);
/* A and B of one connection; notify_disconnect is under way at both afterwards. */
bool lines_connect(struct stage *stage, struct line lines[2]);

bool line_receive(struct line *line, size_t number, size_t at, size_t length);
bool line_send(struct line *line, size_t number, size_t at, size_t length);
bool line_write(struct line *line, size_t number, size_t at, size_t length, const struct end *peer,
                size_t peer_at);
bool line_disconnect(struct line *line);
/* The operation is complete; false after WAIT_MS. */
bool wait_for(struct ndx_overlapped *ov, const char *what);

/* Disconnect every `stride`th of these at once, see all of them end, and close them. */
bool batch_disconnect(struct line *lines, size_t count, size_t stride, struct timing *timing);

/* Say what failed; always false. */
bool went_wrong(const char *what, enum ndx_status status);

#endif
