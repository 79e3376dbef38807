/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same schedule straight on libfabric's tcp provider, ended as programs usually end it: a side
 * calls fi_shutdown at once, or when its own sends have completed; a side that is told of the end
 * takes what is in its completion queue and closes. One thread drives both sides.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "figures.h"

enum { END_MS = 2000 }; /* how long a side waits to be told of the end */

struct request {
	struct fi_context context; /* the provider's; the address comes back with the result */
	struct raw_side *side;
	size_t number;
};

struct raw_side {
	unsigned which;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq; /* of this connection */
	struct fid_ep *ep;
	struct fi_info *request; /* B: of the connection that is asked for */
	bool connected;
	bool ending;          /* has called fi_shutdown */
	bool told;            /* FI_SHUTDOWN */
	uint32_t outstanding; /* sends */
	struct books *books;
	struct request requests[REQUESTS];
	uint8_t receives[MESSAGES][LONGEST];
	uint8_t sends[MESSAGES][LONGEST];
};

struct raw {
	struct raw_side sides[2];
	struct fid_pep *listener;
};

static bool went_well(long result, const char *what)
{
	if (result >= 0)
		return true;
	(void)fprintf(stderr, "ndx-disconnect-figures: %s: %s\n", what, fi_strerror((int)-result));
	return false;
}

static struct fi_info *find(const struct sockaddr_in *to)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info = NULL;
	char port[8];

	if (!hints)
		return NULL;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->fabric_attr->prov_name = strdup("tcp");
	(void)snprintf(port, sizeof(port), "%u", to ? ntohs(to->sin_port) : 0);
	(void)went_well(
		fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", port, to ? 0 : FI_SOURCE, hints, &info),
		"fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

bool raw_available(void)
{
	struct fi_info *info = find(NULL);

	if (!info)
		return false;
	fi_freeinfo(info);
	return true;
}

static bool side_open(struct raw_side *s, const struct sockaddr_in *to)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};

	s->info = find(to);
	return s->info &&
	       went_well(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), "fi_fabric") &&
	       went_well(fi_eq_open(s->fabric, &attr, &s->eq, NULL), "fi_eq_open") &&
	       went_well(fi_domain(s->fabric, s->info, &s->domain, NULL), "fi_domain");
}

static void close_one(struct fid *fid)
{
	if (fid)
		(void)fi_close(fid);
}

static void side_close(struct raw_side *s)
{
	close_one(s->domain ? &s->domain->fid : NULL);
	close_one(s->eq ? &s->eq->fid : NULL);
	close_one(s->fabric ? &s->fabric->fid : NULL);
	fi_freeinfo(s->info);
}

static bool raw_open(struct raw *raw)
{
	struct raw_side *b = &raw->sides[1];
	struct sockaddr_in address;
	size_t length = sizeof(address);

	raw->sides[1].which = 1;
	return side_open(b, NULL) &&
	       went_well(fi_passive_ep(b->fabric, b->info, &raw->listener, NULL),
	                 "fi_passive_ep") &&
	       went_well(fi_pep_bind(raw->listener, &b->eq->fid, 0), "fi_pep_bind") &&
	       went_well(fi_listen(raw->listener), "fi_listen") &&
	       went_well(fi_getname(&raw->listener->fid, &address, &length), "fi_getname") &&
	       side_open(&raw->sides[0], &address);
}

static void raw_close(struct raw *raw)
{
	close_one(raw->listener ? &raw->listener->fid : NULL);
	side_close(&raw->sides[0]);
	side_close(&raw->sides[1]);
}

/* ---- one connection ---- */

static struct request *request_of(struct raw_side *s, size_t number)
{
	s->requests[number].side = s;
	s->requests[number].number = number;
	return &s->requests[number];
}

static bool endpoint_open(struct raw_side *s, struct fi_info *info)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .size = REQUESTS};

	if (!went_well(fi_cq_open(s->domain, &attr, &s->cq, NULL), "fi_cq_open") ||
	    !went_well(fi_endpoint(s->domain, info, &s->ep, NULL), "fi_endpoint") ||
	    !went_well(fi_ep_bind(s->ep, &s->eq->fid, 0), "fi_ep_bind") ||
	    !went_well(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind") ||
	    !went_well(fi_enable(s->ep), "fi_enable"))
		return false;
	for (size_t i = 0; i < MESSAGES; i++) {
		s->books->posted[s->which][i] = true;
		if (!went_well(fi_recv(s->ep, s->receives[i], LONGEST, NULL, 0,
		                       &request_of(s, i)->context),
		               "fi_recv"))
			return false;
	}
	return true;
}

static void endpoint_close(struct raw_side *s)
{
	close_one(s->ep ? &s->ep->fid : NULL);
	s->ep = NULL;
}

static void result(struct raw_side *s, void *context, bool good, size_t length)
{
	struct request *r = context; /* the context is its first member */

	if (!r || r->side != s)
		return; /* of the provider's own making: nothing that this program asked for */
	if (r->number >= FIRST_SEND && !s->books->answered[s->which][r->number])
		s->outstanding--;
	books_result(s->books, s->which, r->number, good,
	             r->number < MESSAGES ? s->receives[r->number] : NULL, length);
}

/* Take results until there are none; false if there was none. */
static bool take_completions(struct raw_side *s)
{
	struct fi_cq_msg_entry entries[16];
	struct fi_cq_err_entry error;
	bool any = false;
	ssize_t got;

	for (;;) {
		got = fi_cq_read(s->cq, entries, 16);
		for (ssize_t i = 0; i < got; i++)
			result(s, entries[i].op_context, true, entries[i].len);
		if (got == -FI_EAVAIL) {
			memset(&error, 0, sizeof(error));
			got = fi_cq_readerr(s->cq, &error, 0);
			if (got > 0)
				result(s, error.op_context, false, 0);
		}
		if (got <= 0)
			return any;
		any = true;
	}
}

/* Look for results and for one event. */
static void progress(struct raw_side *s)
{
	struct fi_eq_err_entry error = {.err = 0};
	struct fi_eq_cm_entry entry;
	uint32_t event = 0;
	ssize_t got;

	if (s->cq)
		(void)take_completions(s);
	got = fi_eq_read(s->eq, &event, &entry, sizeof(entry), 0);
	if (got == -FI_EAVAIL) {
		(void)fi_eq_readerr(s->eq, &error, 0);
		s->told = true;
	} else if (got > 0 && event == FI_CONNREQ) {
		s->request = entry.info;
	} else if (got > 0 && event == FI_CONNECTED) {
		s->connected = true;
	} else if (got > 0 && event == FI_SHUTDOWN) {
		s->told = true;
	}
}

static bool connect_both(struct raw_side *a, struct raw_side *b)
{
	uint64_t deadline = now_us() + (uint64_t)WAIT_MS * 1000;

	if (!endpoint_open(a, a->info) ||
	    !went_well(fi_connect(a->ep, a->info->dest_addr, NULL, 0), "fi_connect"))
		return false;
	while (!(a->connected && b->connected)) {
		progress(a);
		progress(b);
		if (b->request) {
			bool good = endpoint_open(b, b->request) &&
			            went_well(fi_accept(b->ep, NULL, 0), "fi_accept");

			fi_freeinfo(b->request);
			b->request = NULL;
			if (!good)
				return false;
		}
		if (now_us() > deadline || a->told || b->told)
			return went_well(-FI_ETIMEDOUT, "connecting");
	}
	return true;
}

static void post_message(struct raw_side *s, uint32_t index)
{
	const struct plan *plan = s->books->plan;
	ssize_t posted;

	message_fill(s->books, s->which, index, s->sends[index]);
	do {
		posted = fi_send(s->ep, s->sends[index], plan->length[s->which][index], NULL, 0,
		                 &request_of(s, FIRST_SEND + index)->context);
		if (posted == -FI_EAGAIN)
			progress(s);
	} while (posted == -FI_EAGAIN);
	s->books->posted[s->which][FIRST_SEND + index] = posted == 0;
	s->outstanding += posted == 0;
}

static bool wants_to_end(const struct raw_side *s, bool wait_for_sends)
{
	const struct plan *plan = s->books->plan;

	if (s->ending)
		return false;
	if (s->told)
		return true;
	if (plan->who != WHO_BOTH && (plan->who == WHO_B) != (s->which == 1))
		return false;
	return !wait_for_sends || s->outstanding == 0;
}

/* From the first fi_shutdown until both sides were told, or nothing comes any more. */
static void end_both(struct raw *raw, bool wait_for_sends)
{
	uint64_t deadline = now_us() + (uint64_t)END_MS * 1000;
	bool ended = false;

	while (!ended && now_us() < deadline) {
		ended = true;
		for (unsigned i = 0; i < 2; i++) {
			struct raw_side *s = &raw->sides[i];

			if (wants_to_end(s, wait_for_sends)) {
				if (s->told) /* what has come before is taken first */
					(void)take_completions(s);
				(void)fi_shutdown(s->ep, 0);
				s->ending = true;
			}
			progress(s);
			ended = ended && s->told && s->ending;
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		(void)take_completions(&raw->sides[i]);
		endpoint_close(&raw->sides[i]);
		(void)take_completions(&raw->sides[i]);
	}
}

static bool connection(struct raw *raw, struct books *books, bool wait_for_sends)
{
	struct raw_side *sides = raw->sides;
	bool good;

	for (unsigned i = 0; i < 2; i++) {
		sides[i].books = books;
		sides[i].connected = sides[i].ending = sides[i].told = false;
		sides[i].outstanding = 0;
	}
	good = connect_both(&sides[0], &sides[1]);
	for (uint32_t i = 0; good && i < MESSAGES; i++) {
		for (unsigned side = 0; side < 2; side++) {
			if (i < books->plan->count[side])
				post_message(&sides[side], i);
		}
	}
	for (uint32_t i = 0; good && i < books->plan->head_start; i++)
		progress(&sides[i % 2]);
	if (good)
		end_both(raw, wait_for_sends);
	for (unsigned i = 0; i < 2; i++) {
		endpoint_close(&sides[i]);
		close_one(sides[i].cq ? &sides[i].cq->fid : NULL);
		sides[i].cq = NULL;
		books_side_done(books, i);
	}
	books_close(books);
	return good;
}

bool raw_run(bool wait_for_sends, const struct options *o, struct tally *tally)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	uint64_t start = now_us();
	struct books books;
	struct plan plan;
	bool good = raw && raw_open(raw);

	for (uint64_t number = 0; good && number < o->raw_disconnects; number++) {
		plan_make(&plan, o->seed, number);
		books_open(&books, tally, &plan, number);
		good = connection(raw, &books, wait_for_sends);
	}
	tally->microseconds = now_us() - start;
	if (raw)
		raw_close(raw);
	free(raw);
	return good;
}
