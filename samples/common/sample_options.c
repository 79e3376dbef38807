/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_options.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sample_usage(const struct sample_program *program, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nTry: %s --help\n", program->name);
	return SAMPLE_EXIT_USAGE;
}

static void help(const struct sample_program *program)
{
	printf("Usage: %s %s\n\n%s\n\nOptions:\n", program->name, program->synopsis,
	       program->about);
	for (size_t i = 0; i < program->option_count; i++) {
		const struct sample_option *o = &program->options[i];
		int used = printf("  %s%s%s", o->name, o->value != NULL ? " " : "",
		                  o->value != NULL ? o->value : "");

		/* Two spaces at least: docs/man/help.py finds the end of the value by them. */
		printf("%*s%s\n", used < 25 ? 26 - used : 2, "", o->help);
	}
	printf("  %-24s%s\n", "--help", "show this");
	if (program->details != NULL)
		printf("\n%s\n", program->details);
}

/* Find the option that `arg` names, with or without "=VALUE". */
static const struct sample_option *find(const struct sample_program *program, const char *arg)
{
	size_t length = strcspn(arg, "=");

	for (size_t i = 0; i < program->option_count; i++) {
		const char *name = program->options[i].name;

		if (strlen(name) == length && strncmp(name, arg, length) == 0)
			return &program->options[i];
	}
	return NULL;
}

static uint64_t unit_of(const char *suffix)
{
	static const struct {
		char letter;
		uint64_t factor;
	} units[] = {{'k', 1ULL << 10}, {'K', 1ULL << 10}, {'M', 1ULL << 20}, {'G', 1ULL << 30}};

	if (suffix[0] == '\0')
		return 1;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (suffix[0] == units[i].letter && suffix[1] == '\0')
			return units[i].factor;
	}
	return 0;
}

static bool to_number(const struct sample_option *o, const char *text)
{
	unsigned long long n;
	uint64_t factor;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	factor = unit_of(end);
	if (errno != 0 || factor == 0 || n > UINT32_MAX || n * factor < o->min ||
	    n * factor > o->max)
		return false;
	*o->number = (uint32_t)(n * factor);
	return true;
}

/* A 64-bit number has no unit: decimal, or hexadecimal behind 0x. */
static bool to_wide_number(const struct sample_option *o, const char *text)
{
	unsigned long long n;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (errno != 0 || *end != '\0')
		return false;
	*o->wide_number = n;
	return true;
}

/* Parse argv[*at], an option, and its value; false on an error. */
static bool take_option(const struct sample_program *program, int argc, char **argv, int *at)
{
	const char *arg = argv[*at];
	const struct sample_option *o = find(program, arg);
	const char *value = strchr(arg, '=');

	if (o == NULL) {
		sample_usage(program, "there is no option %.*s", (int)strcspn(arg, "="), arg);
		return false;
	}
	if (o->flag != NULL) {
		if (value != NULL) {
			sample_usage(program, "%s takes no value", o->name);
			return false;
		}
		*o->flag = true;
		return true;
	}
	value = value != NULL ? value + 1 : argv[++*at];
	if (*at >= argc) {
		sample_usage(program, "%s needs a value: %s %s", o->name, o->name, o->value);
		return false;
	}
	if (o->number != NULL && !to_number(o, value)) {
		sample_usage(program, "%s %s: give a number from %u to %u", o->name, value, o->min,
		             o->max);
		return false;
	}
	if (o->wide_number != NULL && !to_wide_number(o, value)) {
		sample_usage(program, "%s %s: give a number of at most 64 bits", o->name, value);
		return false;
	}
	if (o->text != NULL)
		*o->text = value;
	return true;
}

bool sample_parse(const struct sample_program *program, int argc, char **argv, size_t *operands,
                  int *code)
{
	bool options = true;
	size_t kept = 0;

	*code = SAMPLE_EXIT_USAGE;
	for (int i = 1; i < argc; i++) {
		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
		} else if (options && strcmp(argv[i], "--help") == 0) {
			help(program);
			*code = SAMPLE_EXIT_OK;
			return false;
		} else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
			if (!take_option(program, argc, argv, &i))
				return false;
		} else if (kept == program->max_operands) {
			sample_usage(program, "%s is one argument too many", argv[i]);
			return false;
		} else {
			argv[++kept] = argv[i];
		}
	}
	*operands = kept;
	return true;
}

bool sample_parse_role(const struct sample_program *program, int argc, char **argv,
                       enum sample_role *role, const char **address, int *code)
{
	static const char *const names[] = {"server", "client", "both"};
	size_t operands;
	size_t i = 0;

	if (!sample_parse(program, argc, argv, &operands, code))
		return false;
	*code = SAMPLE_EXIT_USAGE;
	while (operands > 0 && i < 3 && strcmp(argv[1], names[i]) != 0)
		i++;
	if (operands == 0 || i == 3) {
		(void)sample_usage(program, "say server, client or both");
		return false;
	}
	*role = (enum sample_role)i;
	*address = operands == 2 ? argv[2] : NULL;
	if (*role != SAMPLE_CLIENT || *address != NULL)
		return true;
	(void)sample_usage(program, "client needs the server's address");
	return false;
}

void sample_on_stop(void (*handler)(int signal_number))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}
