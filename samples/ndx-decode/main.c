/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-decode: shows the RPC-over-RDMA messages of a capture file or of a live interface. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_stop.h"

#define FILES_MAX 4096
#define PROGRESS_EVERY 500000

static const char about[] =
	"Reassembles captured RDMA traffic (RoCE, iWARP, InfiniBand) into SEND messages and\n"
	"RPC-over-RDMA calls and replies, and prints a line for each. FILE is pcap or pcapng, "
	"also\n"
	"compressed by gzip; '-' is the standard input. Several files are one capture.";

static const char examples[] =
	"The calls and replies of a capture\n"
	"  ndx-decode capture.pcapng\n"
	"Those of an interface, until Ctrl-C\n"
	"  ndx-decode -i eth0\n"
	"How many NFS calls of each procedure there are in several files\n"
	"  ndx-decode --json a.pcap b.pcap.gz |\n"
	"    jq -r 'select(.event == \"call\").procedure' | sort -n | uniq -c";

static const char details[] =
	"Digests, as --summary prints them: sha256 of each message (calls: the canonical XDR\n"
	"message; replies with a known call: the reduced message and its write chunks), as sorted\n"
	"hexadecimal lines, and sha256 of that.\n\n"
	"Exit status: 0 done, 1 something could not be read or written, 2 command line.";

/** Options and results. */
struct decode {
	bool summary, stats, quiet, no_digest;
	bool people; /* progress is for a terminal that has nothing else */
	FILE *json;  /* NULL: text to stdout */
	const char *extract;
	struct hasher *hasher;
	struct tallies tallies;
	uint64_t messages;
	bool failed;
};

static struct source *volatile current;
static volatile sig_atomic_t stop_asked;

static void stop(int signal_number)
{
	struct source *source = current;

	(void)signal_number;
	stop_asked = 1;
	source_stop_reads();
	if (source != NULL)
		source_stop(source);
}

static bool is_message(const struct ndx_reassembly_event *e)
{
	return e->type == NDX_REASSEMBLY_CALL || e->type == NDX_REASSEMBLY_REPLY;
}

static void message(struct decode *d, const struct ndx_reassembly_event *e)
{
	unsigned which = e->type == NDX_REASSEMBLY_CALL ? HASHER_CALLS : HASHER_REPLIES;

	d->messages++;
	if (d->hasher != NULL && e->rpc.call_known &&
	    !hasher_add(d->hasher, which, e->rpc.pieces, e->rpc.piece_count))
		d->failed = true;
	if (d->extract != NULL && !extract_write(d->extract, d->messages, e)) {
		d->failed = true;
		d->extract = NULL;
	}
}

static void on_event(void *context, const struct ndx_reassembly_event *event)
{
	struct decode *d = context;

	if (d->stats)
		tallies_note(&d->tallies, event);
	if (is_message(event))
		message(d, event);
	if (d->quiet)
		return;
	if (d->json != NULL)
		json_print(event);
	else
		line_print(event);
}

static void progress(const struct ndx_reassembly *reassembly)
{
	struct ndx_reassembly_stats s = {.size = sizeof(s)};

	(void)ndx_reassembly_get_stats(reassembly, &s);
	fprintf(stderr, "\r%s: %" PRIu64 " packets, %" PRIu64 " MB, %" PRIu64 " calls ", DECODE_WHO,
	        s.packets, s.bytes / 1000000, s.calls);
}

static bool decode_source(const struct decode *d, struct source *source,
                          struct ndx_reassembly *reassembly)
{
	const bool people = d->people;
	struct ndx_packet packet;
	uint64_t count = 0;
	int rc;

	current = source;
	if (stop_asked)
		source_stop(source);
	while ((rc = source_next(source, &packet)) > 0) {
		(void)ndx_reassembly_feed(reassembly, &packet);
		if (people && ++count % PROGRESS_EVERY == 0)
			progress(reassembly);
	}
	current = NULL;
	if (people && count >= PROGRESS_EVERY)
		fputc('\n', stderr);
	return rc == 0;
}

static bool decode_live(const struct decode *d, const char *interface,
                        struct ndx_reassembly *reassembly)
{
	struct source *live = source_open_live(interface);
	bool good;

	if (live == NULL)
		return false;
	(void)setvbuf(d->json != NULL ? d->json : stdout, NULL, _IOLBF, BUFSIZ);
	good = decode_source(d, live, reassembly);
	source_close(live);
	return good;
}

static bool decode_files(const struct decode *d, char **files, size_t count,
                         struct ndx_reassembly *reassembly)
{
	bool good = true;

	for (size_t i = 0; i < count && !stop_asked; i++) {
		struct source *source = source_open(files[i]);

		good = source != NULL && decode_source(d, source, reassembly) && good;
		source_close(source);
	}
	return good;
}

static bool finish(struct decode *d, const struct ndx_reassembly *reassembly)
{
	struct summary s = {.digests = {""}, .stats.size = sizeof(s.stats)};
	bool good = !d->failed;

	(void)ndx_reassembly_get_stats(reassembly, &s.stats);
	if (d->hasher != NULL && !hasher_end(d->hasher, s.digests)) {
		fprintf(stderr,
		        "%s: the digests could not be sorted: no room for a temporary "
		        "file\n",
		        DECODE_WHO);
		good = false;
	}
	if (d->stats && d->json != NULL)
		json_print_stats(&d->tallies, &s.stats);
	else if (d->stats)
		tallies_print(&d->tallies, &s.stats);
	if (d->summary && d->json != NULL)
		json_print_summary(&s);
	else if (d->summary)
		summary_print(&s);
	return good;
}

static bool prepare(struct decode *d)
{
	d->quiet = d->summary || d->stats;
	if (d->extract != NULL && mkdir(d->extract, 0777) != 0 && errno != EEXIST) {
		fprintf(stderr, "%s: %s: ", DECODE_WHO, d->extract);
		perror("");
		return false;
	}
	if (!d->summary || d->no_digest)
		return true;
	d->hasher = hasher_create();
	if (d->hasher == NULL) {
		fprintf(stderr, "%s: out of memory\n", DECODE_WHO);
		return false;
	}
	return true;
}

/* Everything but the command line; `interface` NULL: the files. Returns an exit status. */
static int decode(struct decode *d, struct ndx_reassembly_attr *attr, const char *interface,
                  char **files, size_t count)
{
	struct ndx_reassembly *reassembly = NULL;
	enum ndx_status status;
	bool good;

	attr->on_event = on_event;
	attr->context = d;
	status = ndx_reassembly_create(attr, &reassembly);
	if (status != NDX_OK) {
		fprintf(stderr, "%s: %s\n", DECODE_WHO,
		        status == NDX_E_NO_MEMORY ? "out of memory" : "settings out of range");
		return SAMPLE_EXIT_FAILED;
	}
	good = prepare(d);
	if (good) {
		good = interface != NULL ? decode_live(d, interface, reassembly)
		                         : decode_files(d, files, count, reassembly);
		ndx_reassembly_flush(reassembly);
		good = finish(d, reassembly) && good;
	}
	hasher_free(d->hasher);
	free(d->tallies.at);
	ndx_reassembly_close(reassembly);
	return good ? SAMPLE_EXIT_OK : SAMPLE_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	struct decode d = {.people = isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0};
	struct ndx_reassembly_attr attr;
	const char *interface = NULL, *json = NULL;
	uint32_t memory = 24 << 20, age = 300, reorder;
	size_t operands;
	int rc;

	ndx_reassembly_attr_init(&attr);
	reorder = attr.reorder_packets;
	const struct sample_option options[] = {
		{"--json", "FILE", "a JSON object per line, to stdout or FILE, and no text",
	         .text = &json, .value_optional = true},
		{"--summary", NULL, "only counts and digests, at the end", .flag = &d.summary},
		{"--stats", NULL, "only counts by opcode and connection", .flag = &d.stats},
		{"--extract", "DIR", "write each message to a file in DIR", .text = &d.extract},
		{"--check-crc", NULL, "verify ICRC and MPA CRC", .flag = &attr.check_crc},
		{"--no-digest", NULL, "summary without digests", .flag = &d.no_digest},
		{"--interface", "IFACE", "capture live, until SIGINT", .text = &interface,
	         .letter = 'i'},
		{"--memory", "BYTES", "bound of what is held (24Mi)", .number = &memory,
	         .min = 1 << 20, .max = UINT32_MAX},
		{"--age", "SECONDS", "how long to wait for the rest (300)", .number = &age,
	         .min = 1, .max = 1000000},
		{"--reorder", "PACKETS", "how late a packet may come (1024)", .number = &reorder,
	         .min = 0, .max = 1000000},
	};
	const struct sample_program program = {
		.name = DECODE_WHO,
		.synopsis = "FILE... | -i IFACE [options]",
		.about = about,
		.details = details,
		.examples = examples,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = FILES_MAX,
	};

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if ((operands == 0) == (interface == NULL))
		return sample_usage(&program, "give FILE..., or -i IFACE");
	attr.max_bytes = memory;
	attr.max_age_ns = (uint64_t)age * 1000000000;
	attr.reorder_packets = reorder;
	rc = sample_json_open(DECODE_WHO, json, &d.json);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	json_to(d.json);
	sample_on_stop(stop);
	rc = decode(&d, &attr, interface, argv + 1, operands);
	rc = sample_end(DECODE_WHO, sample_json_close(DECODE_WHO, d.json, rc));
	if (interface == NULL)
		sample_stop_by_signal(); /* the files were not read to their end */
	return rc;
}
