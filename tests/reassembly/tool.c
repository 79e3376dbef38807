/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures as files, for tests of ndx-decode and for measuring it.
 *   synth WIRE CALLS SEED OUT      a capture from nothing; prints how many calls and replies it
 * has, and writes them to OUT.calls.N and OUT.replies.N repeat COPIES BYTES IN OUT     IN again and
 * again, other addresses, queue pairs and keys each time, until there are so many copies or bytes
 *   spoil WINDOW OF_10000 IN OUT   IN with packets shuffled within windows and some doubled
 *   measure COMMAND...             run it; print seconds, processor seconds, resident KiB
 */
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "synth.h"
#include "synth_packet.h"

#define SNAPSHOT 262144
#define ETHERNET 14
#define IP 20
#define UDP 8
#define BTH 12
#define QPN_CM 1

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | get16(p + 1);
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) << 16 | get16(p + 2);
}

static void save(pcap_dumper_t *out, const struct synth *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct pcap_pkthdr head = {.caplen = s->packets[i].captured,
		                           .len = s->packets[i].original};

		head.ts.tv_sec = (time_t)(s->packets[i].time_ns / 1000000000);
		head.ts.tv_usec = (suseconds_t)(s->packets[i].time_ns % 1000000000);
		pcap_dump((u_char *)out, &head, s->packets[i].bytes);
	}
	pcap_dump_close(out);
}

static int synth_main(char **argv)
{
	struct synth_options o;
	struct synth *s;
	pcap_t *pcap;
	pcap_dumper_t *out;
	char calls[4096], replies[4096];

	synth_defaults(&o);
	o.wire = (enum synth_wire)strtoul(argv[0], NULL, 10);
	o.calls = (uint32_t)strtoul(argv[1], NULL, 10);
	o.seed = (uint32_t)strtoul(argv[2], NULL, 10);
	o.connections = 2;
	o.crc = o.markers = o.seed % 2 == 0;
	o.pipelined = o.seed % 3 == 0;
	(void)snprintf(calls, sizeof(calls), "%s.calls.", argv[3]);
	(void)snprintf(replies, sizeof(replies), "%s.replies.", argv[3]);
	o.call_prefix = calls;
	o.reply_prefix = replies;
	s = synth_create(&o);
	pcap = pcap_open_dead_with_tstamp_precision((int)s->link_type, SNAPSHOT,
	                                            PCAP_TSTAMP_PRECISION_NANO);
	out = pcap_dump_open(pcap, argv[3]);
	if (out == NULL) {
		fprintf(stderr, "%s\n", pcap_geterr(pcap));
		return 1;
	}
	save(out, s);
	pcap_close(pcap);
	printf("packets %zu\ncalls %zu\ncalls unanswered %u\nreplies %zu\nerrors %u\n", s->count,
	       s->calls.count, s->unanswered, s->replies.count, s->errors);
	synth_free(s);
	return 0;
}

/* Another key for each copy. */
static void change_key(uint8_t *p, uint32_t copy)
{
	synth_put32(p, get32(p) + copy * 0x00010100u);
}

/* The handles in the chunk lists of an RPC-over-RDMA header, if this is one. */
static void change_lists(uint8_t *p, uint32_t length, uint32_t copy)
{
	uint32_t at = 16, lists = 0;

	if (length < 28 || get32(p + 4) != 1 || get32(p + 12) > 1)
		return;
	for (; at + 24 <= length && get32(p + at) == 1; at += 24)
		change_key(p + at + 8, copy);
	for (at += 4; lists < 2; lists++) {
		while (at + 8 <= length && get32(p + at) == 1) {
			uint32_t n = get32(p + at + 4);

			for (at += 8; n > 0 && at + 16 <= length; n--, at += 16)
				change_key(p + at, copy);
			if (lists == 1)
				break;
		}
		at += 4;
	}
}

static void change_qpn(uint8_t *p, uint32_t copy)
{
	synth_put24(p, (get24(p) + 2 * copy) & 0xffffff);
}

static void change_manager(uint8_t *mad, uint32_t copy)
{
	uint32_t attribute = get16(mad + 16);

	if (attribute == 0x10)
		change_qpn(mad + 24 + 32, copy);
	else if (attribute == 0x13)
		change_qpn(mad + 24 + 12, copy);
	else if (attribute == 0x15)
		change_qpn(mad + 24 + 8, copy);
}

static void change_roce(uint8_t *bth, uint32_t length, uint32_t copy)
{
	uint8_t opcode = bth[0] & 31;
	uint8_t *rest = bth + BTH;

	if (length < BTH + 4)
		return;
	length -= BTH + 4;
	if (bth[0] >> 5 == 3) {
		if (get24(bth + 5) == QPN_CM && length >= 8 + 256)
			change_manager(rest + 8, copy);
		return;
	}
	change_qpn(bth + 5, copy);
	if (opcode == 6 || opcode == 10 || opcode == 11 || opcode == 12)
		change_key(rest + 8, copy);
	if (opcode == 0x16 || opcode == 0x17)
		change_key(rest, copy);
	if (opcode == 0 || opcode == 4)
		change_lists(rest, length, copy);
	else if (opcode == 0x17)
		change_lists(rest + 4, length - 4, copy);
}

/* One copy of a packet: other hosts, and for RoCE other queue pairs and keys. */
static void change(uint8_t *p, uint32_t length, uint32_t copy)
{
	uint8_t *ip = p + ETHERNET;

	if (length < ETHERNET + IP + UDP || get16(p + 12) != 0x0800 || ip[0] != 0x45)
		return;
	ip[13] = ip[17] = (uint8_t)(copy >> 8);
	ip[14] = ip[18] = (uint8_t)copy;
	if (ip[9] == 17 && get16(ip + IP + 2) == 4791)
		change_roce(ip + IP + UDP, length - ETHERNET - IP - UDP, copy);
}

static int repeat_main(char **argv)
{
	uint32_t copies = (uint32_t)strtoul(argv[0], NULL, 10), copy = 0;
	uint64_t bytes = strtoull(argv[1], NULL, 10), written = 0, packets = 0;
	char why[PCAP_ERRBUF_SIZE];
	pcap_dumper_t *out = NULL;

	for (; copy < copies && written < bytes; copy++) {
		pcap_t *in = pcap_open_offline(argv[2], why);
		struct pcap_pkthdr *head;
		const u_char *data;
		static uint8_t packet[SNAPSHOT];

		if (in == NULL) {
			fprintf(stderr, "%s\n", why);
			return 1;
		}
		if (out == NULL)
			out = pcap_dump_open(in, argv[3]);
		if (out == NULL) {
			fprintf(stderr, "%s\n", pcap_geterr(in));
			return 1;
		}
		while (pcap_next_ex(in, &head, &data) == 1) {
			memcpy(packet, data, head->caplen);
			change(packet, head->caplen, copy);
			pcap_dump((u_char *)out, head, packet);
			written += 16 + head->caplen;
			packets++;
		}
		pcap_close(in);
	}
	if (out != NULL)
		pcap_dump_close(out);
	printf("copies %u\npackets %llu\nbytes %llu\n", copy, (unsigned long long)packets,
	       (unsigned long long)written);
	return 0;
}

/* All packets of a file, as a synthetic capture. */
static struct synth *load(pcap_t *in)
{
	struct synth *s = calloc(1, sizeof(*s));
	struct pcap_pkthdr *head;
	const u_char *data;

	while (pcap_next_ex(in, &head, &data) == 1) {
		struct synth_packet *p;

		if (s->count == s->room) {
			s->room = s->room == 0 ? 1024 : s->room * 2;
			s->packets = realloc(s->packets, s->room * sizeof(*s->packets));
		}
		p = &s->packets[s->count++];
		p->bytes = malloc(head->caplen + 1);
		p->talk = 0;
		memcpy(p->bytes, data, head->caplen);
		p->captured = head->caplen;
		p->original = head->len;
		p->time_ns = (uint64_t)head->ts.tv_sec * 1000000000 + (uint64_t)head->ts.tv_usec;
	}
	return s;
}

static int spoil_main(char **argv)
{
	char why[PCAP_ERRBUF_SIZE];
	pcap_t *in =
		pcap_open_offline_with_tstamp_precision(argv[2], PCAP_TSTAMP_PRECISION_NANO, why);
	pcap_dumper_t *out;
	struct synth *s;

	if (in == NULL) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	s = load(in);
	synth_double(s, (uint32_t)strtoul(argv[1], NULL, 10), 7);
	synth_shuffle(s, (uint32_t)strtoul(argv[0], NULL, 10), 5);
	out = pcap_dump_open(in, argv[3]);
	if (out == NULL) {
		fprintf(stderr, "%s\n", pcap_geterr(in));
		return 1;
	}
	save(out, s);
	synth_free(s);
	pcap_close(in);
	return 0;
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static int measure_main(char **argv)
{
	struct timespec begin, end;
	struct rusage usage;
	int status = 0;
	pid_t child;

	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	child = fork();
	if (child == 0) {
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &usage) != child)
		return 1;
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	fprintf(stderr, "seconds %.3f processor %.3f resident_kib %ld\n",
	        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9,
	        seconds(&usage.ru_utime) + seconds(&usage.ru_stime), usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "synth") == 0)
		return synth_main(argv + 2);
	if (argc == 6 && strcmp(argv[1], "repeat") == 0)
		return repeat_main(argv + 2);
	if (argc == 6 && strcmp(argv[1], "spoil") == 0)
		return spoil_main(argv + 2);
	if (argc > 2 && strcmp(argv[1], "measure") == 0)
		return measure_main(argv + 2);
	fprintf(stderr,
	        "usage: %s synth WIRE CALLS SEED OUT | repeat COPIES BYTES IN OUT | "
	        "measure COMMAND...\n",
	        argv[0]);
	return 2;
}
