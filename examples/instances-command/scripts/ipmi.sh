#!/bin/sh
# Machines with a baseboard management controller (BMC): ipmi.sh get|stop|delete
#
# EXEUNT_BMC_FILE           lines "NODE ADDRESS USER", /etc/exeunt/bmc without it; other nodes are Foreign
# EXEUNT_BMC_PASSWORD_FILE  file with the password of the users, mode 0600; /etc/exeunt/bmc-password without it
#
# Stop and delete turn the power off at once. The disks stay where they are.
set -eu

verb=${1:?get, stop or delete}
machines=${EXEUNT_BMC_FILE:-/etc/exeunt/bmc}
password=${EXEUNT_BMC_PASSWORD_FILE:-/etc/exeunt/bmc-password}

fail() {
	echo "$1" >&2
	exit 1
}

[ -r "$machines" ] || fail "cannot read $machines"
address=
while read -r node bmc user rest || [ -n "$node" ]; do
	if [ "$node" = "$EXEUNT_NODE" ]; then
		address=$bmc
		break
	fi
done <"$machines"
if [ -z "$address" ]; then
	echo Foreign
	exit
fi
[ -n "$user" ] && [ -z "$rest" ] || fail "the line of $EXEUNT_NODE in $machines must be: NODE ADDRESS USER"

# The listing of a link shows that of the file: a Secret is mounted as links.
case $(ls -ldL "$password") in
-r[-w]-------*) ;;
*) fail "others may read the password in $password: its mode must be 0600" ;;
esac

# power prints "Chassis Power is on" or off, or what was done. ipmitool reads the password from the file.
power() {
	ipmitool -I lanplus -H "$address" -U "$user" -f "$password" chassis power "$1"
}

status=$(power status) || exit 1
case $status in
*"Power is off"*)
	echo Off
	exit
	;;
*"Power is on"*) ;;
*) fail "the BMC of $EXEUNT_NODE says: $status" ;;
esac
case $verb in
get) echo Running ;;
stop | delete)
	power off >/dev/null || exit 1
	echo Stopping
	;;
*) fail "unknown call $verb" ;;
esac
