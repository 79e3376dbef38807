/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines of the samples: one table defines what is parsed, checked and shown by --help. */
#ifndef SAMPLE_OPTIONS_H
#define SAMPLE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Exit status of every sample. */
enum sample_exit {
	SAMPLE_EXIT_OK = 0,
	SAMPLE_EXIT_FAILED = 1,     /**< it ran, and failed */
	SAMPLE_EXIT_USAGE = 2,      /**< wrong command line */
	SAMPLE_EXIT_NO_ADAPTER = 3, /**< no adapter to run on */
};

/**
 * One option. Exactly one of the four targets is set; the target keeps its value if the option is
 * absent.
 *
 * The name of the value also says how a shell completes the value (docs/man/completion.py): URI,
 * FILE, DIR, IFACE, CASES; a|b for one of these words, a|b,... for a list of them.
 */
struct sample_option {
	const char *name;  /**< "--size" */
	const char *value; /**< name of its value in the help; NULL: a flag */
	const char *help;
	bool *flag;
	uint32_t *number; /**< min .. max; k, M and G are powers of 1024 */
	uint64_t *wide_number;
	const char **text;
	uint32_t min, max;
};

/** A program: its options, and the other text of --help. */
struct sample_program {
	const char *name;
	const char *synopsis; /**< "server|client [options]" */
	const char *about;
	const char *details; /**< shown below the options; NULL: none */
	const struct sample_option *options;
	size_t option_count;
	size_t max_operands;
};

/**
 * Parse a command line. Operands are moved to the front of argv[1..]; `--` ends the options.
 *
 * @param[out] operands  number of operands
 * @param[out] code      exit status if this returns false
 *
 * @return false if the program must end: --help was printed, or an error was explained
 */
bool sample_parse(const struct sample_program *program, int argc, char **argv, size_t *operands,
                  int *code);

/** Install `handler` for SIGINT and SIGTERM; the signals interrupt a blocking system call. */
void sample_on_stop(void (*handler)(int signal_number));

/** Role of a program. */
enum sample_role { SAMPLE_SERVER, SAMPLE_CLIENT, SAMPLE_BOTH };

/**
 * As sample_parse(), with the operands `server|client|both [ADDRESS]`. A client needs an address;
 * otherwise it may be NULL.
 */
bool sample_parse_role(const struct sample_program *program, int argc, char **argv,
                       enum sample_role *role, const char **address, int *code);

/** Explain a wrong command line on stderr and refer to --help; returns SAMPLE_EXIT_USAGE. */
int sample_usage(const struct sample_program *program, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
