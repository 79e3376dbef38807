/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: receiver-cases [--rounds N] [--seed S] [--hold-ms MS] [--only CASE] [URI [URI]]: receiver
 * and sender over any stack.
 */
#include "rig.h"

int main(int argc, char **argv)
{
	int uris = 0;
	int failed;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			rig_rounds = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			rig_seed = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--hold-ms") == 0 && i + 1 < argc)
			rig_hold_ms = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
			cmocka_set_test_filter(argv[++i]);
		else if (argv[i][0] != '-' && uris < 2)
			rig_uris[uris++] = argv[i];
		else
			return 2;
	}
	if (uris == 1)
		rig_uris[1] = rig_uris[0];
	print_message("receiver on %s, sender on %s, %u rounds, seed %llu\n", rig_uris[0],
	              rig_uris[1], rig_rounds, (unsigned long long)rig_seed);
	failed = _cmocka_run_group_tests("frames", frame_cases, frame_case_count, NULL, NULL);
	failed += _cmocka_run_group_tests("life", life_cases, life_case_count, NULL, NULL);
	failed += _cmocka_run_group_tests("callbacks", callback_cases, callback_case_count, NULL,
	                                  NULL);
	failed += _cmocka_run_group_tests("faults", fault_cases, fault_case_count, NULL, NULL);
	failed += _cmocka_run_group_tests("order", order_cases, order_case_count, NULL, NULL);
	failed += _cmocka_run_group_tests("wire", wire_cases, wire_case_count, NULL, NULL);
	return failed == 0 ? 0 : 1;
}
