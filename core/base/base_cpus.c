/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_cpus.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Read one number below CPU_SETSIZE; -1: there is none. */
static int parse_cpu(const char **at)
{
	int cpu = 0;

	if (**at < '0' || **at > '9')
		return -1;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		cpu = cpu * 10 + (**at - '0');
		if (cpu >= CPU_SETSIZE)
			return -1;
	}
	return cpu;
}

/* Read "2" or "2-3" and add the processors. */
static bool parse_range(const char **at, cpu_set_t *cpus)
{
	const int first = parse_cpu(at);
	int last = first;

	if (first < 0)
		return false;
	if (**at == '-') {
		(*at)++;
		last = parse_cpu(at);
	}
	for (int cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, cpus);
	return last >= first;
}

bool base_cpus_parse(const char *text, cpu_set_t *out)
{
	cpu_set_t cpus;
	const char *at = text;

	CPU_ZERO(&cpus);
	do {
		if (!parse_range(&at, &cpus))
			return false;
	} while (*at++ == ',');
	if (at[-1] != '\0')
		return false;
	*out = cpus;
	return true;
}

const char *base_cpus_write(const cpu_set_t *cpus, char text[BASE_CPUS_TEXT])
{
	const size_t most = BASE_CPUS_TEXT - sizeof("1023-1023,...");
	size_t used = 0;

	text[0] = '\0';
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		const int first = cpu;

		if (!CPU_ISSET(cpu, cpus))
			continue;
		while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, cpus))
			cpu++;
		if (used > most) {
			(void)snprintf(text + used, BASE_CPUS_TEXT - used, ",...");
			break;
		}
		used += (size_t)snprintf(text + used, BASE_CPUS_TEXT - used, "%s%d",
		                         used > 0 ? "," : "", first);
		if (cpu > first)
			used += (size_t)snprintf(text + used, BASE_CPUS_TEXT - used, "-%d", cpu);
	}
	return text;
}

int base_cpus_first_outside(const cpu_set_t *cpus, const cpu_set_t *of)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, cpus) && !CPU_ISSET(cpu, of))
			return cpu;
	}
	return -1;
}

bool base_cpus_online(cpu_set_t *out)
{
	char text[4096];
	ssize_t len;
	const int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (len < 0)
		return false;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return base_cpus_parse(text, out);
}
