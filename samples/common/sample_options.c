/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_number.h"

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

/* One line of the list of options; returns nothing, as a failed write shows at the end. */
static void print_option(const struct sample_option *o)
{
	int used = 2;

	if (o->letter != 0)
		used += printf("  -%c, %s", o->letter, o->name) - 2;
	else
		used += printf("  %s", o->name) - 2;
	if (o->value != NULL)
		used += printf(o->value_optional ? "[=%s]" : " %s", o->value);
	/* Two spaces at least: docs/man finds the end of the value by them. */
	printf("%*s%s\n", used < 25 ? 26 - used : 2, "", o->help);
}

int sample_end_output(const char *program, bool ok)
{
	errno = 0;
	if (fflush(stdout) == 0 && ferror(stdout) == 0 && ok)
		return SAMPLE_EXIT_OK;
	/* What failed before may have left an error mark, and no errno. */
	fprintf(stderr, "%s: the output cannot be written to stdout: %s\n", program,
	        errno != 0 ? strerror(errno) : "a write failed");
	return SAMPLE_EXIT_FAILED;
}

int sample_end(const char *program, int rc)
{
	const int written = sample_end_output(program, true);

	return rc != SAMPLE_EXIT_OK ? rc : written;
}

static int print_help(const struct sample_program *program)
{
	static const struct sample_option own[] = {
		{.name = "--help", .letter = 'h', .help = "show this"},
		{.name = "--version", .help = "show the version"},
	};

	printf("Usage: %s %s\n\n%s\n\nOptions:\n", program->name, program->synopsis,
	       program->about);
	for (size_t i = 0; i < program->option_count; i++) {
		if (!program->options[i].hidden)
			print_option(&program->options[i]);
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		print_option(&own[i]);
	if (program->details != NULL)
		printf("\n%s\n", program->details);
	if (program->examples != NULL)
		printf("\nExamples:\n%s\n", program->examples);
	return sample_end_output(program->name, true);
}

static int print_version(const struct sample_program *program)
{
	printf("%s (NDX) %s\n", program->name, NDX_PROGRAM_VERSION);
	return sample_end_output(program->name, true);
}

/* Find the option that `arg` names, with or without "=VALUE". */
static const struct sample_option *find_option(const struct sample_program *program,
                                               const char *arg)
{
	size_t length = strcspn(arg, "=");

	for (size_t i = 0; i < program->option_count; i++) {
		const char *name = program->options[i].name;

		if (strlen(name) == length && strncmp(name, arg, length) == 0)
			return &program->options[i];
	}
	return NULL;
}

static const struct sample_option *find_letter(const struct sample_program *program, char letter)
{
	const char name[] = {'-', letter, '\0'};

	for (size_t i = 0; i < program->option_count; i++) {
		if (program->options[i].letter == letter ||
		    strcmp(program->options[i].name, name) == 0)
			return &program->options[i];
	}
	return NULL;
}

/* A name is near if little was mistyped in it, or if it begins so. */
static size_t distance_to(const char *arg, size_t length, const char *name)
{
	const size_t distance = sample_distance(arg, length, name, strlen(name));

	if (length > 3 && strncmp(arg, name, length) == 0)
		return 1;
	return sample_distance_is_near(distance, length) ? distance : SIZE_MAX;
}

/* The name that was meant by `arg`, without "=VALUE"; NULL: none is near. */
static const char *nearest_option(const struct sample_program *program, const char *arg)
{
	const size_t length = strcspn(arg, "=");
	const char *nearest = NULL;
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < program->option_count + 2; i++) {
		const char *name = i < program->option_count    ? program->options[i].name
		                   : i == program->option_count ? "--help"
		                                                : "--version";
		const size_t distance = distance_to(arg, length, name);

		if (distance < least &&
		    (i >= program->option_count || !program->options[i].hidden)) {
			least = distance;
			nearest = name;
		}
	}
	return nearest;
}

static int refuse_option(const struct sample_program *program, const char *arg)
{
	const char *nearest = nearest_option(program, arg);
	const int length = (int)strcspn(arg, "=");

	if (nearest != NULL)
		return sample_usage(program, "there is no option %.*s; did you mean %s?", length,
		                    arg, nearest);
	return sample_usage(program, "there is no option %.*s", length, arg);
}

static bool take_number(const struct sample_program *program, const struct sample_option *o,
                        const char *text)
{
	const uint64_t most = o->max == 0 && o->number == NULL ? UINT64_MAX : o->max;
	uint64_t n;

	if (!sample_number(text, &n)) {
		sample_usage(program,
		             "%s %s: give a number from %" PRIu64 " to %" PRIu64
		             "; " SAMPLE_NUMBER_UNITS,
		             o->name, text, o->min, most);
		return false;
	}
	if (n < o->min || n > most || (o->number != NULL && n > UINT32_MAX)) {
		sample_usage(program, "%s %s: give a number from %" PRIu64 " to %" PRIu64, o->name,
		             text, o->min, most);
		return false;
	}
	if (o->number != NULL)
		*o->number = (uint32_t)n;
	else
		*o->wide_number = n;
	return true;
}

/* `value` NULL: there is none. */
static bool store_value(const struct sample_program *program, const struct sample_option *o,
                        const char *value)
{
	if (o->flag != NULL) {
		*o->flag = true;
		return true;
	}
	if (value == NULL && o->value_optional) {
		*o->text = "-";
		return true;
	}
	if (value == NULL) {
		sample_usage(program, "%s needs a value: %s %s", o->name, o->name, o->value);
		return false;
	}
	if (o->text == NULL)
		return take_number(program, o, value);
	*o->text = value;
	return true;
}

/* Whether the next argument is the value of an option that may be without one. */
static bool value_follows(const struct sample_option *o, const char *next)
{
	return o->value_may_follow && next != NULL && (next[0] != '-' || next[1] == '\0');
}

/* Parse argv[*at], a long option, and its value; false on an error. */
static bool take_option(const struct sample_program *program, char **argv, int *at)
{
	const char *arg = argv[*at];
	const struct sample_option *o = find_option(program, arg);
	const char *value = strchr(arg, '=');

	if (o == NULL) {
		(void)refuse_option(program, arg);
		return false;
	}
	if (o->flag != NULL && value != NULL) {
		sample_usage(program, "%s takes no value", o->name);
		return false;
	}
	if (value != NULL)
		return store_value(program, o, value + 1);
	if (o->flag == NULL && argv[*at + 1] != NULL &&
	    (!o->value_optional || value_follows(o, argv[*at + 1])))
		value = argv[++*at];
	return store_value(program, o, value);
}

/* Parse argv[*at], letters behind one "-", and the value of the last; false on an error. */
static bool take_letters(const struct sample_program *program, char **argv, int *at)
{
	for (const char *letter = argv[*at] + 1; *letter != '\0'; letter++) {
		const struct sample_option *o = find_letter(program, *letter);

		if (o == NULL) {
			sample_usage(program, "there is no option -%c", *letter);
			return false;
		}
		if (o->flag == NULL && letter[1] != '\0')
			return store_value(program, o, letter + 1);
		if (o->flag == NULL && !o->value_optional && argv[*at + 1] != NULL)
			return store_value(program, o, argv[++*at]);
		if (!store_value(program, o, NULL))
			return false;
	}
	return true;
}

/* --help and --version, unless the program's table has an option of that name; false: neither. */
static bool take_own(const struct sample_program *program, const char *arg, int *code)
{
	const bool help = strcmp(arg, "--help") == 0 ||
	                  (strcmp(arg, "-h") == 0 && find_letter(program, 'h') == NULL);

	if (help)
		*code = print_help(program);
	else if (strcmp(arg, "--version") == 0)
		*code = print_version(program);
	else
		return false;
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
		} else if (options && take_own(program, argv[i], code)) {
			return false;
		} else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
			if (!(argv[i][1] == '-' ? take_option(program, argv, &i)
			                        : take_letters(program, argv, &i)))
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

static const char *const role_names[] = {"server", "client", "both"};

static int refuse_role(const struct sample_program *program, const char *word)
{
	for (size_t i = 0; i < 3 && word[0] != '\0'; i++) {
		if (distance_to(word, strlen(word), role_names[i]) != SIZE_MAX)
			return sample_usage(program, "%s: did you mean %s?", word, role_names[i]);
	}
	return sample_usage(program, "say server, client or both");
}

bool sample_parse_role(const struct sample_program *program, int argc, char **argv,
                       enum sample_role *role, const char **address, int *code)
{
	size_t operands;
	size_t i = 0;

	if (!sample_parse(program, argc, argv, &operands, code))
		return false;
	*code = SAMPLE_EXIT_USAGE;
	while (operands > 0 && i < 3 && strcmp(argv[1], role_names[i]) != 0)
		i++;
	if (operands == 0 || i == 3) {
		(void)refuse_role(program, operands > 0 ? argv[1] : "");
		return false;
	}
	*role = (enum sample_role)i;
	*address = operands == 2 ? argv[2] : NULL;
	if (*role != SAMPLE_CLIENT || *address != NULL)
		return true;
	(void)sample_usage(program, "client needs the server's address");
	return false;
}
