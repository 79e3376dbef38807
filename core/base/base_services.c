/* SPDX-License-Identifier: BSD-2-Clause */
/* For the providers inside libndx; one in a file of its own has the variable of its kit. */
#include <ndx/spi/provider.h>

struct ndx_spi_binding ndxp_binding;
