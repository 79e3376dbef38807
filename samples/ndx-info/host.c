/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Causes on the host that prevent RDMA: locked memory, kernel modules, ports, device files. The
 * hints of the library are about adapters that it finds; these findings are about devices that it
 * cannot find.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "info.h"

/** Less than this is too little for RDMA hardware. */
#define LOCKED_MEMORY_ENOUGH ((rlim_t)64 << 20)

/** Room for findings; devices beyond this number are not inspected. */
#define FINDINGS_MAX 64

const char *info_severity_name(enum info_severity severity)
{
	switch (severity) {
	case INFO_FINE:
		return "fine";
	case INFO_NOTE:
		return "note";
	case INFO_WARNING:
		return "warning";
	}
	return "?";
}

/* Add a finding with its text; NULL if there is no room. The caller adds the remedy. */
__attribute__((format(printf, 4, 5))) static struct info_finding *found(struct info_report *report,
                                                                        enum info_severity severity,
                                                                        const char *subject,
                                                                        const char *format, ...)
{
	struct info_finding *finding;
	va_list args;

	if (report->finding_count == FINDINGS_MAX)
		return NULL;
	finding = &report->findings[report->finding_count++];
	finding->severity = severity;
	snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
	return finding;
}

__attribute__((format(printf, 2, 3))) static void remedy(struct info_finding *finding,
                                                         const char *format, ...)
{
	va_list args;

	if (finding == NULL)
		return;
	va_start(args, format);
	vsnprintf(finding->remedy, sizeof(finding->remedy), format, args);
	va_end(args);
}

static void inspect_locked_memory(struct info_report *report)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		return;
	if (limit.rlim_cur == RLIM_INFINITY) {
		(void)found(report, INFO_FINE, "locked memory", "no limit");
	} else if (limit.rlim_cur >= LOCKED_MEMORY_ENOUGH) {
		(void)found(report, INFO_FINE, "locked memory", "up to %llu MiB",
		            (unsigned long long)(limit.rlim_cur >> 20));
	} else {
		remedy(found(report, INFO_WARNING, "locked memory",
		             "RLIMIT_MEMLOCK is %llu KiB: RDMA hardware cannot pin much (loop and "
		             "ofi:tcp do not pin)",
		             (unsigned long long)(limit.rlim_cur >> 10)),
		       "echo '* - memlock unlimited' > /etc/security/limits.d/ndx.conf  # then log "
		       "in again; services: LimitMEMLOCK=infinity");
	}
}

/* Compose a path of at most PATH_MAX bytes; false if it is longer. */
__attribute__((format(printf, 2, 3))) static bool compose(char path[PATH_MAX], const char *format,
                                                          ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(path, PATH_MAX, format, args);
	va_end(args);
	return length >= 0 && length < PATH_MAX;
}

/* Read the first line of a file, without its newline. */
static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "r");
	bool ok;

	if (file == NULL)
		return false;
	ok = fgets(line, (int)size, file) != NULL;
	(void)fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Names in a folder, sorted; NULL and 0 if there are none. Release with drop_names(). */
static struct dirent **names_in(const char *path, size_t *count)
{
	struct dirent **names = NULL;
	int n = scandir(path, &names, is_shown, alphasort);

	*count = n > 0 ? (size_t)n : 0;
	return n >= 0 ? names : NULL;
}

static void drop_names(struct dirent **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

static void inspect_port(struct info_report *report, const char *ports_path, const char *device,
                         const char *port)
{
	char path[PATH_MAX], state[64], netdev[64], subject[32];
	struct info_finding *finding;

	if (!compose(path, "%s/%s/state", ports_path, port) ||
	    !read_line(path, state, sizeof(state)))
		return;
	snprintf(subject, sizeof(subject), "%.16s port %.4s", device, port);
	if (strstr(state, "ACTIVE") != NULL) {
		(void)found(report, INFO_FINE, subject, "active");
		return;
	}
	finding = found(report, INFO_WARNING, subject, "the port is down (%s)", state);
	if (compose(path, "%s/%s/gid_attrs/ndevs/0", ports_path, port) &&
	    read_line(path, netdev, sizeof(netdev)))
		remedy(finding, "ip link set %s up", netdev);
	else
		remedy(finding, "check the cable; on InfiniBand start a subnet manager: "
		                "apt-get install opensm");
}

/* Inspect all RDMA devices of the kernel; returns their number. */
static size_t inspect_devices(const char *root, struct info_report *report)
{
	char path[PATH_MAX];
	struct dirent **devices, **ports;
	size_t device_count, port_count;

	if (!compose(path, "%s/sys/class/infiniband", root))
		return 0;
	devices = names_in(path, &device_count);
	for (size_t i = 0; i < device_count; i++) {
		const char *device = devices[i]->d_name;

		if (!compose(path, "%s/sys/class/infiniband/%s/ports", root, device))
			continue;
		ports = names_in(path, &port_count);
		for (size_t k = 0; k < port_count; k++)
			inspect_port(report, path, device, ports[k]->d_name);
		drop_names(ports, port_count);
	}
	drop_names(devices, device_count);
	return device_count;
}

/* Check a device file that user space needs, and name the module that creates it. */
static void inspect_file(const char *root, struct info_report *report, const char *name,
                         const char *module)
{
	char path[PATH_MAX];

	if (!compose(path, "%s/dev/infiniband/%s", root, name) || access(path, R_OK | W_OK) == 0)
		return;
	if (errno == ENOENT)
		remedy(found(report, INFO_WARNING, name,
		             "/dev/infiniband/%s is missing: kernel module %s is not loaded", name,
		             module),
		       "modprobe %s", module);
	else
		remedy(found(report, INFO_WARNING, name, "/dev/infiniband/%s: %s", name,
		             strerror(errno)),
		       "chmod 0666 /dev/infiniband/%s  # what rdma-core's udev rules do", name);
}

bool info_inspect_host(const char *root, struct info_report *report)
{
	report->findings = calloc(FINDINGS_MAX, sizeof(*report->findings));
	if (report->findings == NULL)
		return false;
	inspect_locked_memory(report);
	if (inspect_devices(root, report) == 0) {
		remedy(found(report, INFO_NOTE, "RDMA devices",
		             "the kernel has none; software RoCE needs no hardware"),
		       "apt-get install rdma-core && modprobe rdma_rxe && rdma link add rxe0 type "
		       "rxe netdev eth0  # or your interface");
		return true;
	}
	inspect_file(root, report, "uverbs0", "ib_uverbs");
	inspect_file(root, report, "rdma_cm", "rdma_ucm");
	return true;
}
