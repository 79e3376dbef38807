/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A channel of TLS and the frames on it: whatever the peer sends, in pieces of any size, before the
 * handshake has ended and after it; and whatever certificate the peer shows.
 *
 * The input is a way, then steps: each step takes a number of bytes, which the peer sends as
 * records or as they are, and then the server reads. What was sent as records has to come out
 * again, whole and in order; behind a failure nothing may come.
 *
 * The way says by what the ends prove themselves: by a pre-shared key, by certificates of the usual
 * kinds, good and bad, or by one whose names are of the input. An end that must not be admitted is
 * not. The handshake may be the second between the two, which is resumed, and the input may change
 * what passes between them.
 */
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame_io.h"
#include "fuzz.h"
#include "tls_papers.h"
#include "tls_private.h"

enum { MESSAGE = 600, TURNS = 64, PASSED = 4096, LAST_TURNS = 4 };

/* The first byte of the input. */
enum {
	WAY_READY = 1,     /* the handshake comes first */
	WAY_PLAIN = 2,     /* then, some pieces are no records */
	WAY_GIVE_UP = 4,   /* at the end, the time for the handshake is over */
	WAY_PROOF = 8,     /* to 24: enum proof */
	WAY_AGAIN = 32,    /* the handshake is the second between the two */
	WAY_TAMPERED = 64, /* the input changes bytes of the handshake */
	WAY_NAMED = 128,   /* DEMAND_NAMED */
};

enum proof { BY_KEY, BY_PAPERS, BY_MADE_CLIENT, BY_MADE_SERVER };
enum { CLIENT, SERVER };

static const uint8_t *input;
static size_t left;

static uint8_t take_byte(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

/* ---- both ends ---- */

/* Of the client, of the server. */
static struct tls_context *const *key_contexts(void)
{
	static const char line[] = "fuzz:000102030405060708090a0b0c0d0e0f\n";
	static struct tls_context *contexts[2];
	struct ndx_tls_attr attr;
	int fd;

	if (contexts[CLIENT] != NULL)
		return contexts;
	ndx_tls_attr_init(&attr);
	attr.psk_file = papers_file(line, sizeof(line) - 1, &fd);
	FUZZ_HOLDS(tls_context_create(&attr, NDX_ROLE_CLIENT, "fuzz", &contexts[CLIENT]) == NDX_OK);
	FUZZ_HOLDS(tls_context_create(&attr, NDX_ROLE_SERVER, "fuzz", &contexts[SERVER]) == NDX_OK);
	(void)close(fd);
	return contexts;
}

/* How the two prove themselves, and what may come of it. */
struct proving {
	enum proof by;
	struct tls_context *contexts[2];
	X509 *shown[2]; /* instead of the contexts' certificates; NULL: those */
	X509 *made;     /* the one of the input; NULL: none */
	bool bare;      /* the client has no certificate */
	bool may_succeed;
	bool must_succeed;
};

/* Kinds for the client, which may have none, and for the server. */
static void take_usual(struct proving *p, enum demand demand)
{
	const uint8_t papers = take_byte();
	const enum paper client = (enum paper)(papers % (PAPERS + 1));
	const enum paper server = (enum paper)(papers / (PAPERS + 1) % PAPERS);

	p->bare = client == PAPERS;
	if (!p->bare)
		p->shown[CLIENT] = papers_usual(client);
	p->shown[SERVER] = papers_usual(server);
	p->may_succeed =
		server == PAPER_GOOD && (p->bare ? demand == DEMAND_NAMED : client == PAPER_GOOD);
	p->must_succeed = p->may_succeed;
}

static void take_made(struct proving *p, enum demand demand)
{
	bool named = false;
	bool here = false;

	p->made = papers_made(take_byte, &named, &here);
	if (p->made == NULL) { /* both are the contexts' */
		p->may_succeed = true;
		p->must_succeed = true;
	} else if (p->by == BY_MADE_CLIENT) {
		p->shown[CLIENT] = p->made;
		p->may_succeed = named || demand == DEMAND_ANY;
	} else {
		p->shown[SERVER] = p->made;
		p->may_succeed = here;
	}
}

static struct proving take_proving(uint8_t how)
{
	const enum demand demand = (how & WAY_NAMED) != 0 ? DEMAND_NAMED : DEMAND_ANY;
	struct proving p = {.by = (enum proof)(how / WAY_PROOF % 4)};

	if (p.by == BY_KEY) {
		memcpy(p.contexts, key_contexts(), sizeof(p.contexts));
		p.may_succeed = true;
		p.must_succeed = true;
		return p;
	}
	if (p.by == BY_PAPERS)
		take_usual(&p, demand);
	else
		take_made(&p, demand);
	p.contexts[CLIENT] = papers_client(p.bare);
	p.contexts[SERVER] = papers_server(demand);
	return p;
}

/* No input knows the tickets of another; and libFuzzer looks for a leak, which takes 0.1 s, after
 * each input that leaves memory behind. */
static void forget_tickets(const struct proving *p)
{
	if (p->by == BY_KEY)
		return;
	tls_forget_sessions(p->contexts[CLIENT]);
	tls_forget_given(p->contexts[SERVER]);
	FUZZ_HOLDS(tls_let_resume(p->contexts[SERVER]));
}

struct channel {
	int fds[2];    /* of the ends */
	int relays[2]; /* the other end of each, so that what is sent passes through here */
	struct tls *ends[2];
	bool tampered;
	bool harmed; /* bytes that are no records have come after the handshake */
	/* The server's reader of frames, and what its bytes have to be. */
	struct frame_reader frames;
	size_t expected; /* bytes that were sent as records */
	size_t received;
	uint64_t sent_sum;
	uint64_t received_sum;
	bool over;
};

/* The order counts, too. */
static void add_to(uint64_t *sum, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		*sum = (*sum ^ bytes[i]) * UINT64_C(1099511628211);
}

static enum ndx_status receive(void *arg, void *data, size_t room, size_t *got)
{
	struct channel *c = arg;
	const bool failed = tls_has_failed(c->ends[SERVER]);
	const enum ndx_status st = tls_receive(c->ends[SERVER], data, room, got);

	if (st != NDX_OK)
		return st;
	FUZZ_HOLDS(!failed && *got > 0 && *got <= room);
	FUZZ_HOLDS(tls_is_ready(c->ends[SERVER]));
	c->received += *got;
	add_to(&c->received_sum, data, *got);
	FUZZ_HOLDS(c->received <= c->expected);
	return st;
}

/* The server reads frames until it has to wait. */
static void serve(struct channel *c)
{
	enum ndx_status st = NDX_OK;
	const char *why = "";
	struct frame f;

	for (int i = 0; i < TURNS && !c->over; i++) {
		switch (frame_read(&c->frames, MESSAGE, receive, c, &f, &st, &why)) {
		case FRAME_WHOLE:
			FUZZ_HOLDS(f.length <= MESSAGE);
			frame_reader_consume(&c->frames);
			break;
		case FRAME_MORE:
			c->over = st != NDX_PENDING;
			return;
		case FRAME_BAD:
		default:
			FUZZ_HOLDS(why[0] != '\0');
			c->over = true;
		}
	}
}

/* Change a byte of what an end has sent, or let a part of it arrive alone. The length of that. */
static size_t tamper(struct channel *c, uint8_t *bytes, size_t length)
{
	const uint8_t how = take_byte();
	size_t at = take_byte();

	at = (at << 8 | take_byte()) % length;
	if ((how & 1) != 0) {
		bytes[at] ^= (uint8_t)(take_byte() | 1);
		c->tampered = true;
	}
	return (how & 2) != 0 ? at : length;
}

static void deliver(struct channel *c, int to, const uint8_t *bytes, size_t length)
{
	const ssize_t sent = send(c->relays[to], bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

	/* an end that is over does not read any more */
	c->harmed = c->harmed || sent != (ssize_t)length;
}

/* False: the end has failed. No data has been sent yet. */
static bool turn(struct channel *c, int end)
{
	uint8_t byte;
	size_t got;
	const enum ndx_status st = tls_receive(c->ends[end], &byte, 1, &got);

	FUZZ_HOLDS(st < 0 || st == NDX_PENDING);
	return st == NDX_PENDING;
}

/* What one end has sent comes to the other. */
static void pass(struct channel *c, int from, bool tampers)
{
	const int to = from == CLIENT ? SERVER : CLIENT;
	uint8_t bytes[PASSED];
	ssize_t n;

	while ((n = recv(c->relays[from], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		size_t first = (size_t)n;

		if (tampers && left > 0)
			first = tamper(c, bytes, first);
		if (first > 0)
			deliver(c, to, bytes, first);
		if (first == (size_t)n)
			continue;
		(void)turn(c, to);
		deliver(c, to, bytes + first, (size_t)n - first);
	}
}

static bool are_ready(const struct channel *c)
{
	return tls_is_ready(c->ends[CLIENT]) && tls_is_ready(c->ends[SERVER]);
}

/* Until both are ready and a ticket has come, or one has failed and the other knows. */
static void shake_hands(struct channel *c, bool tampers)
{
	bool lives = true;

	for (int i = 0, last = LAST_TURNS; i < TURNS && last > 0; i++) {
		lives = turn(c, i % 2) && lives;
		pass(c, i % 2, tampers);
		if (!lives || are_ready(c))
			last--;
	}
}

/* The peer sends a piece of the input. `plain`: not as records. */
static void send_piece(struct channel *c, bool plain)
{
	size_t length = (size_t)take_byte() + 1;
	size_t sent = 0;

	length = length < left ? length : left;
	if (length == 0)
		return;
	if (plain) {
		(void)send(c->relays[SERVER], input, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		c->harmed = true;
	} else if (tls_send(c->ends[CLIENT], input, length, &sent) == NDX_OK && !c->harmed) {
		c->expected += length;
		add_to(&c->sent_sum, input, length);
	}
	pass(c, CLIENT, false);
	input += length;
	left -= length;
}

/* Both ends say the same of a ticket, and one that the client has is good. */
static void look_at_the_ticket(const struct channel *c, const struct proving *p, bool offered)
{
	const bool resumed = tls_is_resumed(c->ends[SERVER]);

	FUZZ_HOLDS(tls_is_resumed(c->ends[CLIENT]) == resumed);
	FUZZ_HOLDS(offered || !resumed);
	FUZZ_HOLDS(!offered || c->tampered || !p->must_succeed || resumed == !p->bare);
}

/* An end admits a good certificate, and refuses a bad one. */
static void look_at_the_proof(const struct channel *c, const struct proving *p, bool again)
{
	FUZZ_HOLDS(p->may_succeed || !tls_is_ready(c->ends[SERVER]));
	FUZZ_HOLDS(c->tampered || !p->must_succeed || are_ready(c));
	if (are_ready(c))
		look_at_the_ticket(c, p, again && p->by != BY_KEY);
}

static bool is_printable(const char *text, size_t room)
{
	const size_t length = strnlen(text, room);

	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return length < room;
}

/* What the server says of the client. */
static void look_at_the_names(const struct channel *c, const struct proving *p)
{
	enum tls_proof kind = p->bare ? TLS_ANONYMOUS : TLS_BY_CERTIFICATE;
	struct tls_identity who;

	if (p->by == BY_KEY)
		kind = TLS_BY_KEY;
	FUZZ_HOLDS(tls_identify(c->ends[SERVER], &who) && who.kind == kind);
	FUZZ_HOLDS(is_printable(who.name, sizeof(who.name)));
	FUZZ_HOLDS(kind != TLS_BY_KEY || strcmp(who.name, "fuzz") == 0);
	FUZZ_HOLDS(tls_has_key(c->ends[SERVER], "fuzz") == (kind == TLS_BY_KEY));
	FUZZ_HOLDS(p->by == BY_MADE_CLIENT ||
	           tls_has_name(c->ends[SERVER], PAPER_DNS) == (kind == TLS_BY_CERTIFICATE));
}

/* The client says it all, and the server has it all, unless its frames were bad. */
static void look_at_the_end(struct channel *c, const struct proving *p, bool began)
{
	char text[TLS_TEXT];

	FUZZ_HOLDS(c->over || c->harmed || !began || c->received_sum == c->sent_sum);
	for (int i = 0; i < 2; i++) {
		FUZZ_HOLDS(is_printable(tls_describe(c->ends[i], text, sizeof(text)), TLS_TEXT));
		FUZZ_HOLDS(is_printable(tls_why(c->ends[i]), TLS_WHY));
	}
	if (tls_is_ready(c->ends[SERVER]))
		look_at_the_names(c, p);
	FUZZ_HOLDS(ERR_peek_error() == 0); /* nothing is left for what else uses OpenSSL */
}

static void channel_open(struct channel *c, const struct proving *p)
{
	for (int i = 0; i < 2; i++) {
		int both[2];

		FUZZ_HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		                      both) == 0);
		c->fds[i] = both[0];
		c->relays[i] = both[1];
		c->ends[i] =
			tls_begin(p->contexts[i], c->fds[i], i == CLIENT ? "127.0.0.1:1" : NULL);
		FUZZ_HOLDS(c->ends[i] != NULL);
		if (p->shown[i] != NULL)
			FUZZ_HOLDS(SSL_use_certificate(c->ends[i]->ssl, p->shown[i]) == 1);
	}
}

/* Behind a failure there is nothing but what is thrown away. */
static void channel_close(struct channel *c)
{
	uint8_t rest[512];
	size_t got;

	if (tls_has_failed(c->ends[SERVER]))
		FUZZ_HOLDS(tls_receive(c->ends[SERVER], rest, sizeof(rest), &got) < 0);
	(void)tls_discard(c->ends[SERVER], rest, sizeof(rest), &got);
	for (int i = 0; i < 2; i++) {
		tls_end(c->ends[i]);
		(void)close(c->fds[i]);
		(void)close(c->relays[i]);
	}
	frame_reader_clear(&c->frames);
}

/* So that the next handshake can be resumed. */
static void shake_hands_before(const struct proving *p)
{
	struct channel c = {.over = false};

	channel_open(&c, p);
	shake_hands(&c, false);
	look_at_the_proof(&c, p, false);
	look_at_the_end(&c, p, false);
	channel_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct channel c = {.over = false};
	struct proving p;
	bool ready;
	uint8_t how;

	input = data;
	left = size;
	how = take_byte();
	ready = (how & WAY_READY) != 0;
	p = take_proving(how);
	if ((how & WAY_AGAIN) != 0)
		shake_hands_before(&p);
	channel_open(&c, &p);
	if (ready) {
		shake_hands(&c, (how & WAY_TAMPERED) != 0);
		look_at_the_proof(&c, &p, (how & WAY_AGAIN) != 0);
		ready = are_ready(&c);
	}
	while (left > 0) {
		/* Before the handshake there is nothing but plain bytes. */
		send_piece(&c, !ready || ((how & WAY_PLAIN) != 0 && (take_byte() & 7u) == 7));
		serve(&c);
	}
	look_at_the_end(&c, &p, ready);
	if ((how & WAY_GIVE_UP) != 0)
		tls_give_up(c.ends[SERVER]);
	channel_close(&c);
	forget_tickets(&p);
	X509_free(p.made);
	return 0;
}
