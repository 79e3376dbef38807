#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: removal.sh
# In the guest: delete an extra device while it has a connection. Exit status 0: both ends were
# notified, and the kernel released the device when everything was closed.
set -u
ip link add v8 type veth peer name v9 &&
	ip link set v8 up && ip link set v9 up &&
	ip addr add 10.9.9.1/24 dev v9 &&
	rdma link add rxe9 type rxe netdev v9 || exit 1
exec timeout -s KILL 90 device-removal rxe9 10.9.9.1
