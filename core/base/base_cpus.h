/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of processors as the kernel and taskset(1) write them, such as 2-3,8. */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Room for the list of any set, as far as a message needs it. */
#define BASE_CPUS_TEXT 128

/* Read a list. False, and `out` is untouched, if the text is no list, a range runs backwards, or a
 * number is not below CPU_SETSIZE. */
bool base_cpus_parse(const char *text, cpu_set_t *out);

/* Write a list; one that is too long is cut after a comma and ends in "...". Returns `text`. */
const char *base_cpus_write(const cpu_set_t *cpus, char text[BASE_CPUS_TEXT]);

/* The first processor of `cpus` that is not in `of`; -1: there is none. */
int base_cpus_first_outside(const cpu_set_t *cpus, const cpu_set_t *of);

/* The processors of this host that are online. False: the kernel does not tell. */
bool base_cpus_online(cpu_set_t *out);

#endif
