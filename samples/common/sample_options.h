/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines of the samples: one table says what is parsed, checked and shown by --help. */
#ifndef SAMPLE_OPTIONS_H
#define SAMPLE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What every sample returns to the shell. */
enum sample_exit {
	SAMPLE_EXIT_OK = 0,
	SAMPLE_EXIT_FAILED = 1,     /**< it ran, and something was wrong */
	SAMPLE_EXIT_USAGE = 2,      /**< the command line */
	SAMPLE_EXIT_NO_ADAPTER = 3, /**< nothing there to run on */
};

/** One option. Exactly one of the three targets is set; it keeps its value if the option is absent.
 */
struct sample_option {
	const char *name;  /**< "--size" */
	const char *value; /**< what to call its value in the help; NULL for a flag */
	const char *help;
	bool *flag;
	uint32_t *number; /**< min .. max; k, M and G are understood as powers of 1024 */
	const char **text;
	uint32_t min, max;
};

/** A program: its options, and what --help says around them. */
struct sample_program {
	const char *name;
	const char *synopsis; /**< "server|client [options]" */
	const char *about;
	const char *details; /**< shown below the options; NULL: nothing */
	const struct sample_option *options;
	size_t option_count;
	size_t max_operands;
};

/**
 * Parse a command line. Operands are moved to the front of argv[1..]; `--` ends the options.
 *
 * @param[out] operands  number of operands
 * @param[out] code      what to exit with if this returns false
 *
 * @return false if the program shall end: --help was shown, or a mistake was explained
 */
bool sample_parse(const struct sample_program *program, int argc, char **argv, size_t *operands,
                  int *code);

/** SIGINT and SIGTERM call `handler` from now on, and end a system call that blocks. */
void sample_on_stop(void (*handler)(int signal_number));

/** What a program plays. */
enum sample_role { SAMPLE_SERVER, SAMPLE_CLIENT, SAMPLE_BOTH };

/** As sample_parse(), of `server|client|both [ADDRESS]`; a client's is needed, else it may be NULL.
 */
bool sample_parse_role(const struct sample_program *program, int argc, char **argv,
                       enum sample_role *role, const char **address, int *code);

/** Explain a mistake on stderr and point to --help; returns SAMPLE_EXIT_USAGE. */
int sample_usage(const struct sample_program *program, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
