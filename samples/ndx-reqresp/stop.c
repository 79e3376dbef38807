/* SPDX-License-Identifier: BSD-2-Clause */
/* What signals request of client and server: to stop, and to print a snapshot. */
#include <signal.h>
#include <string.h>

#include "reqresp.h"
#include "sample_stop.h"

atomic_bool reqresp_stop;
atomic_bool reqresp_tell;

static void stop(int signal_number)
{
	(void)signal_number;
	reqresp_stop = true;
}

/* A signal handler may do no more than this: the loops print. */
static void on_usr1(int signal_number)
{
	(void)signal_number;
	reqresp_tell = true;
}

void reqresp_catch_signals(void)
{
	struct sigaction action;

	sample_on_stop(stop);
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_usr1;
	action.sa_flags = SA_RESTART;
	(void)sigaction(SIGUSR1, &action, NULL);
}
