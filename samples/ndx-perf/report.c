/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_json.h"
#include "sample_options.h"

#define WHO "ndx-perf client"
#define POINTS 4096u /* of the plot */

static const struct {
	const char *key;
	double percent;
} percentiles[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99_9", 99.9}};

#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

struct report {
	const struct perf_options *options; /* of the client */
	json_t *rows;
	json_t *head;
	bool any, broken;
	const char *meaning; /* of the last row: a table has a heading for each */
	struct plot_point *points;
	unsigned point_count;
};

static const char latency_columns[] =
	"operation      size   depth  qps thr     messages    min    p50    p90    p99  p99.9"
	"    max      msg/s  cpu us: client server";
static const char bandwidth_columns[] =
	"operation      size   depth  qps thr     messages    Gbit/s     MiB/s      msg/s"
	"  cpu us: client server";

struct report *report_begin(const struct perf_options *options, const char *adapter)
{
	struct report *report = calloc(1, sizeof(*report));

	if (report == NULL)
		return NULL;
	report->options = options;
	report->points = calloc(POINTS, sizeof(*report->points));
	report->rows = json_array();
	report->head = json_pack("{s:s, s:s}", "adapter", adapter, "server", options->server);
	if (report->points != NULL && report->rows != NULL && report->head != NULL)
		return report;
	free(report->points);
	json_decref(report->rows);
	json_decref(report->head);
	free(report);
	return NULL;
}

/* ---- figures ---- */

/* Nanoseconds of a round trip as microseconds of what the row is about. */
static double us(const struct perf_row *row, double ns)
{
	return ns / 1e3 / row->trips;
}

static double percentile(const struct perf_row *row, const struct histogram *h, double percent)
{
	return us(row, (double)histogram_percentile(h, percent));
}

static double bytes_a_second(const struct perf_row *row)
{
	return row->messages_a_second * row->test.size;
}

static double gbit(const struct perf_row *row)
{
	return bytes_a_second(row) * 8 / 1e9;
}

static double mib(const struct perf_row *row)
{
	return bytes_a_second(row) / 1048576;
}

static const char *meaning(const struct perf_row *row)
{
	static const char *const texts[] = {"data in one direction", "data in both directions",
	                                    "from the time when a request was due to its answer",
	                                    "from the post of a read to its result",
	                                    "half a round trip"};

	if (row->latency == NULL)
		return texts[row->test.both ? 1 : 0];
	if (row->rate > 0)
		return texts[2];
	return texts[row->test.op == PERF_READ ? 3 : 4];
}

/* ---- table ---- */

static void cpu_columns(const struct perf_row *row)
{
	printf("  %14.2f", row->client_cpu_us);
	if (row->server_cpu_us >= 0)
		printf(" %6.2f", row->server_cpu_us);
	else
		printf(" %6s", "-");
	printf("%s\n", row->error != NULL ? "  incomplete" : "");
}

static void heading(struct report *report, const struct perf_row *row)
{
	if (report->meaning == meaning(row))
		return;
	if (row->latency != NULL)
		printf("%sLatency in us, %s; percentiles at most 0.8 %% too high\n%s\n",
		       report->any ? "\n" : "", meaning(row), latency_columns);
	else
		printf("%sBandwidth, %s; 1 Gbit/s is 10^9 bit/s, 1 MiB/s is 2^20 bytes/s\n%s\n",
		       report->any ? "\n" : "", meaning(row), bandwidth_columns);
}

static void bars(const struct perf_row *row)
{
	const struct histogram *h = row->latency;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (h->buckets[i] > 0)
			printf("  <= %10.2f us  %12llu\n", us(row, (double)histogram_top(i)),
			       (unsigned long long)h->buckets[i]);
	}
}

static void print_row(struct report *report, const struct perf_row *row)
{
	const struct perf_test *t = &row->test;

	heading(report, row);
	printf("%-9s %9u %7u %4u %3u %12llu", perf_op_name(t->op), t->size, t->depth, t->qps,
	       t->threads, (unsigned long long)row->messages);
	if (row->latency != NULL) {
		printf(" %6.2f", us(row, (double)row->latency->min));
		for (size_t i = 0; i < PERCENTILES; i++)
			printf(" %6.2f", percentile(row, row->latency, percentiles[i].percent));
		printf(" %6.2f %10.0f", us(row, (double)row->latency->max), row->messages_a_second);
	} else {
		printf(" %9.3f %9.1f %10.0f", gbit(row), mib(row), row->messages_a_second);
	}
	cpu_columns(row);
	if (row->latency != NULL && report->options->histogram)
		bars(row);
}

/* ---- CSV ---- */

static void print_csv(const struct report *report, const struct perf_row *row)
{
	const struct perf_test *t = &row->test;

	if (!report->any)
		printf("test,operation,size,depth,queue_pairs,threads,both_directions,wait,rate,"
		       "seconds,messages,messages_per_second,gbit_per_second,mib_per_second,"
		       "min_us,p50_us,p90_us,p99_us,p99_9_us,max_us,client_cpu_us,"
		       "server_cpu_us,complete\n");
	printf("%s,%s,%u,%u,%u,%u,%d,%d,%.0f,%.6f,%llu,%.3f,%.6f,%.3f", perf_kind_name(t->kind),
	       perf_op_name(t->op), t->size, t->depth, t->qps, t->threads, t->both, t->wait,
	       row->rate, row->seconds, (unsigned long long)row->messages, row->messages_a_second,
	       gbit(row), mib(row));
	if (row->latency != NULL) {
		printf(",%.3f", us(row, (double)row->latency->min));
		for (size_t i = 0; i < PERCENTILES; i++)
			printf(",%.3f", percentile(row, row->latency, percentiles[i].percent));
		printf(",%.3f", us(row, (double)row->latency->max));
	} else {
		printf(",,,,,,");
	}
	printf(",%.3f,", row->client_cpu_us);
	if (row->server_cpu_us >= 0)
		printf("%.3f", row->server_cpu_us);
	printf(",%d\n", row->error == NULL);
}

/* ---- JSON ---- */

static json_t *number_or_null(double value)
{
	return value >= 0 ? json_real(value) : json_null();
}

static json_t *times(const struct perf_row *row, const struct histogram *h)
{
	json_t *object = json_object();

	(void)json_object_set_new(object, "min", json_real(us(row, (double)h->min)));
	for (size_t i = 0; i < PERCENTILES; i++)
		(void)json_object_set_new(object, percentiles[i].key,
		                          json_real(percentile(row, h, percentiles[i].percent)));
	(void)json_object_set_new(object, "max", json_real(us(row, (double)h->max)));
	(void)json_object_set_new(object, "mean", json_real(us(row, histogram_mean(h))));
	return object;
}

static json_t *steps(const struct perf_row *row)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		const uint64_t count = row->latency->buckets[i];

		if (count > 0)
			(void)json_array_append_new(
				array, json_pack("[f, I]", us(row, (double)histogram_top(i)),
			                         (json_int_t)count));
	}
	return array;
}

static void add_json(struct report *report, const struct perf_row *row)
{
	const struct perf_test *t = &row->test;
	json_t *object = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:b, s:f, s:f, s:I, s:f, s:f, s:f, s:o, s:o, "
		"s:s?}",
		"test", perf_kind_name(t->kind), "operation", perf_op_name(t->op), "size",
		(json_int_t)t->size, "depth", (json_int_t)t->depth, "queue_pairs",
		(json_int_t)t->qps, "threads", (json_int_t)t->threads, "both_directions", t->both,
		"wait", t->wait, "rate", row->rate, "seconds", row->seconds, "messages",
		(json_int_t)row->messages, "messages_per_second", row->messages_a_second,
		"gbit_per_second", gbit(row), "mib_per_second", mib(row), "client_cpu_us",
		number_or_null(row->client_cpu_us), "server_cpu_us",
		number_or_null(row->server_cpu_us), "error", row->error);

	if (object == NULL) {
		report->broken = true;
		return;
	}
	if (row->latency != NULL) {
		(void)json_object_set_new(object, "latency_us", times(row, row->latency));
		(void)json_object_set_new(object, "latency_is", json_string(meaning(row)));
	}
	if (row->service != NULL)
		(void)json_object_set_new(object, "uncorrected_us", times(row, row->service));
	if (row->latency != NULL && report->options->histogram)
		(void)json_object_set_new(object, "histogram_us", steps(row));
	(void)json_array_append_new(report->rows, object);
}

/* ---- */

static void add_point(struct report *report, const struct perf_row *row)
{
	struct plot_point *point = &report->points[report->point_count];

	if (report->point_count == POINTS || row->messages == 0)
		return;
	point->kind = row->test.kind;
	point->name = perf_op_name(row->test.op);
	point->x = row->test.size;
	point->y = row->latency != NULL ? percentile(row, row->latency, 50) : gbit(row);
	report->point_count++;
}

void report_row(struct report *report, const struct perf_row *row)
{
	if (report->options->json != NULL)
		add_json(report, row);
	else if (report->options->csv)
		print_csv(report, row);
	else
		print_row(report, row);
	(void)fflush(stdout);
	add_point(report, row);
	report->any = true;
	report->meaning = meaning(row);
}

int report_end(struct report *report, json_t **object)
{
	const struct perf_options *o = report->options;
	int rc = SAMPLE_EXIT_OK;

	*object = NULL;
	/* The head takes a reference to the rows. */
	if (report->broken || json_object_set(report->head, "rows", report->rows) != 0) {
		rc = sample_error(WHO, "no memory for the rows");
	} else if (o->json != NULL) {
		*object = json_incref(report->head);
	}
	if (o->plot != NULL &&
	    plot_write(WHO, o->plot, report->points, report->point_count) != SAMPLE_EXIT_OK)
		rc = SAMPLE_EXIT_FAILED;
	free(report->points);
	json_decref(report->rows);
	json_decref(report->head);
	free(report);
	return rc;
}
