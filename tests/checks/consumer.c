/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of a user, for install.sh: argv[1] is what pkg-config says. */
#include <stdio.h>
#include <string.h>

#include <ndx/ndx.h>

int main(int argc, char **argv)
{
	char header[32];

	(void)snprintf(header, sizeof(header), "%d.%d.%d", NDX_VERSION_MAJOR, NDX_VERSION_MINOR,
	               NDX_VERSION_PATCH);
	printf("header %s, library %s, pkg-config %s, status 0 is %s\n", header, ndx_version(),
	       argc > 1 ? argv[1] : "nothing", ndx_status_name(NDX_OK));
	return argc == 2 && strcmp(header, ndx_version()) == 0 && strcmp(header, argv[1]) == 0 ? 0
	                                                                                       : 1;
}
