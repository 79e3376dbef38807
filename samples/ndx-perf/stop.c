/* SPDX-License-Identifier: BSD-2-Clause */
/* What signals request of client and server. */
#include "perf.h"
#include "sample_stop.h"

volatile sig_atomic_t perf_stop;

static void on_stop(int signal_number)
{
	(void)signal_number;
	perf_stop = 1;
}

void perf_catch_signals(void)
{
	sample_on_stop(on_stop);
}
