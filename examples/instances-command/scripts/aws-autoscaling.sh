#!/bin/sh
# Machines of Auto Scaling groups of AWS: aws-autoscaling.sh get|stop|delete
#
# EXEUNT_CLUSTER          name of the cluster; its machines have the tag kubernetes.io/cluster/NAME
# EXEUNT_MACHINE_DEVICES  devices of the machine besides its root device, such as "/dev/xvdb" of Bottlerocket
#
# Rights: ec2:DescribeInstances, ec2:TerminateInstances, autoscaling:TerminateInstanceInAutoScalingGroup.
set -eu

verb=${1:?get, stop or delete}
cluster=${EXEUNT_CLUSTER:?is not set}
case $cluster in *[!A-Za-z0-9._-]*)
	echo "EXEUNT_CLUSTER $cluster is no name of a cluster" >&2
	exit 1
	;;
esac

# call runs the AWS CLI. A call that fails ends the script, a throttled one with 75.
call() {
	{ problem=$(aws "$@" 2>&1 >&3) || fail "$problem"; } 3>&1
}

fail() {
	printf '%s\n' "$1" >&2
	case $1 in *Throttl* | *RequestLimitExceeded*) exit 75 ;; esac
	exit 1
}

answer() {
	echo "$1"
	exit 0
}

# terminate lets the group replace the machine. The group may wait an hour for a lifecycle hook or a load balancer, so
# the machine is terminated directly as well.
terminate() {
	if (call autoscaling terminate-instance-in-auto-scaling-group --instance-id "$id" \
		--no-should-decrement-desired-capacity >/dev/null); then
		(call ec2 terminate-instances --instance-ids "$id" >/dev/null) || :
	else
		call ec2 terminate-instances --instance-ids "$id" >/dev/null
	fi
	answer Stopping
}

# keep_disks refuses a termination that deletes a disk. Volumes that Kubernetes attaches outlive the machine, unless
# somebody has changed that: then a claim would lose its data.
keep_disks() {
	for device in $deleted; do
		case " $root ${EXEUNT_MACHINE_DEVICES:-} " in
		*" $device "*) ;;
		*)
			echo "the termination of $id would delete the volume at $device: set its DeleteOnTermination to false," \
				"or name the device in EXEUNT_MACHINE_DEVICES if it belongs to the machine" >&2
			exit 3
			;;
		esac
	done
}

# aws:///ZONE/i-0123456789abcdef0; a kubelet can register anything.
id=${EXEUNT_PROVIDER_ID##*/}
case $EXEUNT_PROVIDER_ID in aws:///*) ;; *) answer Foreign ;; esac
case $id in i-) answer Foreign ;; i-*) ;; *) answer Foreign ;; esac
case ${id#i-} in *[!0-9a-f]*) answer Foreign ;; esac

found=$(call ec2 describe-instances --filters "Name=instance-id,Values=$id" --output text --query "\
Reservations[].Instances[].[State.Name, \
length(not_null(Tags, \`[]\`)[?Key=='kubernetes.io/cluster/$cluster']), \
length(not_null(Tags, \`[]\`)[?Key=='aws:autoscaling:groupName']), \
RootDeviceName, \
join(' ', not_null(BlockDeviceMappings, \`[]\`)[?Ebs.DeleteOnTermination].DeviceName)]")
[ -n "$found" ] || answer Gone
read -r state tags groups root deleted <<END
$found
END
# A terminated machine loses its tags before it disappears.
[ "$state" != terminated ] || answer Gone
[ "$tags" != 0 ] || answer Foreign

case "$verb $state" in
*" shutting-down") answer Stopping ;;
"get pending" | "get running") answer Running ;;
"get stopping" | "stop stopping") answer Stopping ;;
"get stopped" | "stop stopped") answer Off ;;
"stop pending" | "stop running" | "delete pending" | "delete running" | "delete stopping" | "delete stopped") ;;
*)
	echo "unknown call $verb, or unknown state $state of $id" >&2
	exit 1
	;;
esac
if [ "$groups" = 0 ]; then
	echo "$id is in no Auto Scaling group, so nothing would replace it" >&2
	exit 3
fi
[ "$verb" = delete ] || keep_disks
terminate
