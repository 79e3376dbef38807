#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: addresses.sh
# In the guest: a device without an IP address, and GIDs that do not exist. Exit status 0: each
# failure names its cause, and what needs no address opens.
set -u
ip link add v6 type veth peer name v7 &&
	sysctl -qw net.ipv6.conf.v7.addr_gen_mode=1 &&
	ip link set v6 up && ip link set v7 up &&
	rdma link add rxe7 type rxe netdev v7 || exit 1

# opens URI STATUS TEXT: ndx-info ends with STATUS and prints TEXT
opens() {
	timeout 30 ndx-info "$1" >/tmp/info 2>&1
	status=$?
	[ $status -eq "$2" ] && grep -qF "$3" /tmp/info && return
	echo "$1: status $status, wanted $2 and '$3':"
	cat /tmp/info
	exit 1
}

opens verbs:rxe7 3 'verbs:rxe7 port 1 has no IP address; ip address add'
opens 'verbs:rxe7?gid=200' 3 'verbs:rxe7 port 1 has no GID 200'
opens 'verbs:rxe7?gid=0' 0 'usable'
rdma link delete rxe7 && ip link delete v6
