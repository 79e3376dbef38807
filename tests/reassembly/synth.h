/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures from nothing: RPC-over-RDMA conversations over any link, transport and path MTU, with
 * the messages they carry. What real captures lack (IPv6, other MTUs, sequence numbers that wrap,
 * two sites with equal keys, MPA with CRCs and markers) is made here; and then spoiled: shuffled,
 * thinned, doubled, cut.
 */
#ifndef SYNTH_H
#define SYNTH_H

#include <ndx/reassembly.h>

enum synth_wire {
	SYNTH_ROCE2_IPV4,
	SYNTH_ROCE2_IPV6,
	SYNTH_ROCE1,
	SYNTH_INFINIBAND, /* in ERF records */
	SYNTH_IWARP,
	SYNTH_IWARP_IPV6,
	SYNTH_WIRES,
};

enum synth_link {
	SYNTH_ETHERNET,
	SYNTH_VLAN,
	SYNTH_SLL,
	SYNTH_SLL2,
	SYNTH_RAW,
	SYNTH_QINQ,
	SYNTH_ERF_ETHERNET,
	SYNTH_LINKS,
};

struct synth_options {
	enum synth_wire wire;
	enum synth_link link;
	uint32_t seed;
	uint32_t connections;
	uint32_t calls;   /* per connection */
	uint32_t mtu;     /* of the path; iWARP: of TCP segments */
	uint32_t psn;     /* where sequence numbers begin; also those of TCP */
	uint32_t chunk;   /* longest chunk */
	bool equal_keys;  /* all connections use the same queue pairs, handles, xids: other hosts */
	bool same_hosts;  /* all connections are between the same two hosts */
	bool manager;     /* connection manager, SYN and MPA set-up come first */
	bool acknowledge; /* InfiniBand: acknowledgements */
	bool retry;       /* InfiniBand: some operations are begun again in the middle */
	bool reuse;       /* one handle for all calls of a connection */
	bool unchecked;   /* InfiniBand: no ICRC is computed */
	bool crc, markers; /* iWARP */
	bool unaligned;    /* iWARP: frames lie anywhere in TCP segments */
	bool xrc;          /* InfiniBand: extended reliable connections */
	bool global;       /* InfiniBand, native: with a global route header */
	uint32_t
		again; /* all is said twice; the second time sequence numbers begin so much lower */
	const char *call_prefix, *reply_prefix; /* of files to write the messages to; NULL: none */
	bool pipelined;                         /* several calls at a time, answered in any order */
};

struct synth_packet {
	uint8_t *bytes;
	uint32_t captured, original;
	uint64_t time_ns;
	uint32_t talk; /* number of the conversation it is part of, from 1; 0: of none */
};

/* Messages of one kind, as hashes. */
struct synth_message {
	uint64_t hash;
	uint32_t talk;
};

struct synth_messages {
	struct synth_message *at;
	size_t count, room;
	const char *prefix; /* a file with that and a number for each; NULL: none */
};

struct synth {
	struct synth_options options;
	struct synth_packet *packets;
	size_t count, room;
	uint32_t link_type;
	uint32_t talks; /* conversations, so far */
	uint32_t talk;  /* the one that packets are made of now */
	struct synth_messages calls, replies;
	uint32_t errors; /* calls that were answered by RDMA_ERROR */
	uint32_t unanswered;
	uint8_t *harmed; /* by conversation: a packet of it was taken away or cut */
};

void synth_defaults(struct synth_options *options);
struct synth *synth_create(const struct synth_options *options);
void synth_free(struct synth *synth);

/* Random, but the same for the same state. */
uint32_t synth_random(uint32_t *state);

/* Exchange packets at random within windows of that many. */
void synth_shuffle(struct synth *synth, uint32_t window, uint32_t seed);
/* Remove, or double somewhat later, so many of ten thousand. */
void synth_drop(struct synth *synth, uint32_t of_10000, uint32_t seed);
void synth_double(struct synth *synth, uint32_t of_10000, uint32_t seed);
/* Every packet comes once more, behind so many others; as from a mirror port that sees both ways,
 * or when all is retransmitted. */
void synth_echo(struct synth *synth, uint32_t behind);
/* Keep that many bytes of each packet. */
void synth_cut(struct synth *synth, uint32_t snapshot);
/* Begin only with that packet. */
void synth_skip(struct synth *synth, size_t packets);

/* The conversation of that packet is harmed; none is. */
void synth_harm(struct synth *synth, size_t packet);
void synth_heal(struct synth *synth);

/* What came out of a reassembly. */
struct synth_result {
	struct synth_messages calls, replies;
	uint64_t events[16]; /* by type */
	struct ndx_reassembly_stats stats;
};

/* Feed all packets. `attr` may be NULL; its callback is not used. */
void synth_run(const struct synth *synth, const struct ndx_reassembly_attr *attr,
               struct synth_result *result);
void synth_result_free(struct synth_result *result);

/* Note a message of a conversation, as pieces. */
void synth_note(struct synth_messages *messages, uint32_t talk, const struct ndx_piece *pieces,
                size_t count);

/* Are all of `some` in `all`, as often? Both get sorted. */
bool synth_subset(struct synth_messages *some, struct synth_messages *all);

/* The same, however often. */
bool synth_among(struct synth_messages *some, struct synth_messages *all);

/* Are all messages of conversations that were not harmed in `all`, as often? */
bool synth_unharmed(const struct synth *synth, struct synth_messages *some,
                    struct synth_messages *all);

#endif
