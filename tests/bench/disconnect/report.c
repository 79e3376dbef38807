/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures as text. */
#include <inttypes.h>
#include <stdio.h>

#include "figures.h"

static void print_number(uint64_t number, bool known)
{
	if (known)
		(void)printf("%11" PRIu64, number);
	else
		(void)printf("%11s", "-");
}

static void print_tally(const struct row *row)
{
	const struct tally *t = &row->tally;

	(void)printf("%-26s", row->name);
	print_number(t->connections, true);
	print_number(t->posted, true);
	print_number(t->completed, true);
	print_number(t->delivered, true);
	print_number(t->lost, true);
	print_number(t->cut_off, true);
	print_number(t->doubled, true);
	print_number(t->late, !row->raw);
	print_number(t->unanswered, true);
	print_number(t->corrupt, true);
	print_number(t->failed, !row->raw);
	(void)printf("%8.1f s\n", (double)t->microseconds / 1e6);
}

static void print_time(const char *name, const struct timing *t, enum kind kind)
{
	(void)printf("%-26s%-23s", name, kind_name(kind));
	if (t->skipped)
		(void)printf("skipped: %s\n", t->skipped);
	else
		(void)printf("%6zu%10zu%12.3f%12.3f%12.3f\n", t->count, t->succeeded,
		             (double)t->p50 / 1e3, (double)t->p99 / 1e3, (double)t->max / 1e3);
}

void report_text(const struct row *rows, size_t count, const struct options *o)
{
	static const char *const heads[] = {"disconnects", "posted",  "completed", "delivered",
	                                    "LOST",        "cut off", "doubled",   "late",
	                                    "no result",   "corrupt", "failed"};

	(void)printf("Messages both ways, each with a receive that waits for it (seed %" PRIu64
	             ")\n%-26s",
	             o->seed, "");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		(void)printf(" %*s", i ? 10 : 11, heads[i]);
	(void)printf("\n");
	for (size_t i = 0; i < count; i++)
		print_tally(&rows[i]);
	(void)printf("\nmilliseconds that a disconnect takes\n%-26s%-23s%6s%10s%12s%12s%12s\n", "",
	             "peer", "count", "succeeded", "p50", "p99", "max");
	for (size_t i = 0; i < count; i++) {
		for (unsigned kind = 0; kind < KINDS && !rows[i].raw; kind++)
			print_time(rows[i].name, &rows[i].timings[kind], (enum kind)kind);
	}
}
