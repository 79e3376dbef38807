/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport to an FPGA, which knows registers and no sessions. */
#ifndef SURF_DEVICE_H
#define SURF_DEVICE_H

#include <ndx/spi/plugin.h>

/* The plugin's state. */
struct surf_plugin {
	const struct ndx_plugin_host *host; /* NULL: no log */
};

/* One transport, "registers". */
extern const struct ndx_plugin_transport surf_device_transports[];

#endif
