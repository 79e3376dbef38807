#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: removal.sh
# In the guest: a device of its own is deleted under a connection. Exit status 0: both ends were
# told, and the kernel let go of it when all was closed.
set -u
ip link add v8 type veth peer name v9 &&
	ip link set v8 up && ip link set v9 up &&
	ip addr add 10.9.9.1/24 dev v9 &&
	rdma link add rxe9 type rxe netdev v9 || exit 1
exec timeout -s KILL 90 device-removal rxe9 10.9.9.1
