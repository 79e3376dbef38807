/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines of all programs: one table defines what is parsed, checked and shown by --help.
 * Every program also has --help (-h) and --version; docs/man makes its manual page and its
 * completion from what --help prints.
 */
#ifndef SAMPLE_OPTIONS_H
#define SAMPLE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample_stop.h" /* each program with options also ends by signals */

/** Exit status of every program. A program that a signal ends dies by that signal. */
enum sample_exit {
	SAMPLE_EXIT_OK = 0,
	SAMPLE_EXIT_FAILED = 1,     /**< it ran, and failed; or its output could not be written */
	SAMPLE_EXIT_USAGE = 2,      /**< wrong command line */
	SAMPLE_EXIT_NO_ADAPTER = 3, /**< the adapter could not be opened */
};

/**
 * One option. Exactly one of the four targets is set; the target keeps its value if the option is
 * absent.
 *
 * The name of the value also says how a shell completes the value (docs/man/completion.py): URI,
 * FILE, DIR, IFACE, CASES; a|b for one of these words, a|b,... for a list of them.
 */
struct sample_option {
	const char *name;  /**< "--size"; or "-s", if there is only a letter */
	const char *value; /**< name of its value in the help; NULL: a flag */
	const char *help;  /**< with the unit, and the default in parentheses */
	bool *flag;
	uint32_t *number; /**< min .. max, with the units of sample_number() */
	uint64_t *wide_number;
	const char **text;
	uint64_t min, max; /**< of a wide number: max 0 is no limit */
	char letter;       /**< 's' if -s is the same option; 0: none */
	/**
	 * The value may be left out, and otherwise stands behind "=": --json, --json=FILE. The
	 * target is "-" then. With `value_may_follow`, for options that always had a value, the
	 * next argument is the value, too, unless it is an option.
	 */
	bool value_optional, value_may_follow;
	bool hidden; /**< an old spelling: accepted, and not in the help */
};

/**
 * Rows that programs share, so that the same words mean the same. The target of JSON is a text:
 * NULL without the option, "-" for stdout, or a file; see sample_json.h.
 */
#define SAMPLE_ROW_ADAPTER(target)                                                            \
	{                                                                                     \
		"--adapter", "URI", "which adapter, e.g. ofi:tcp?iface=lo", .text = &(target) \
	}
#define SAMPLE_ROW_JSON(target)                                                           \
	{                                                                                 \
		"--json", "FILE", "results as JSON, to stdout or FILE, and nothing else", \
			.text = &(target), .value_optional = true                         \
	}
#define SAMPLE_ROW_TIMEOUT_MS(target)                                                             \
	{                                                                                         \
		"--timeout", "MS", "for an answer of any kind (10000)", .number = &(target),      \
									.min = 1, .max = 1u << 30 \
	}
#define SAMPLE_ROW_QUIET(target)                                                      \
	{                                                                             \
		"--quiet", NULL, "no progress line", .flag = &(target), .letter = 'q' \
	}
#define SAMPLE_ROW_VERBOSE(target)                                                                 \
	{                                                                                          \
		"--verbose", NULL, "the library's log on stderr", .flag = &(target), .letter = 'v' \
	}

/** A program: its options, and the other text of --help. */
struct sample_program {
	const char *name;
	const char *synopsis; /**< "server|client [options]" */
	const char *about;
	const char *details;  /**< shown below the options; NULL: none */
	const char *examples; /**< lines "  COMMAND" with a remark above each; NULL: none */
	const struct sample_option *options;
	size_t option_count;
	size_t max_operands;
};

/**
 * Parse a command line. Operands are moved to the front of argv[1..]; `--` ends the options. Short
 * options may be joined, and have their value behind them or as the next argument.
 *
 * @param[out] operands  number of operands
 * @param[out] code      exit status if this returns false
 *
 * @return false if the program must end: --help or --version was printed, or an error was explained
 */
bool sample_parse(const struct sample_program *program, int argc, char **argv, size_t *operands,
                  int *code);

/** Role of a program. */
enum sample_role { SAMPLE_SERVER, SAMPLE_CLIENT, SAMPLE_BOTH };

/**
 * As sample_parse(), with the operands `server|client|both [ADDRESS]`. A client needs an address;
 * otherwise it may be NULL.
 */
bool sample_parse_role(const struct sample_program *program, int argc, char **argv,
                       enum sample_role *role, const char **address, int *code);

/**
 * What was printed to stdout is written, if @p ok: a full disk shows at the latest now. Returns an
 * enum sample_exit; a failure was printed.
 */
int sample_end_output(const char *program, bool ok);

/** The exit status of a program: @p rc, or a failure if its output could not be written. */
int sample_end(const char *program, int rc);

/** Explain a wrong command line on stderr and refer to --help; returns SAMPLE_EXIT_USAGE. */
int sample_usage(const struct sample_program *program, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
