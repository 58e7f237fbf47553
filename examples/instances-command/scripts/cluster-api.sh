#!/bin/sh
# Machines of Cluster API: cluster-api.sh get|stop|delete
#
# EXEUNT_MANAGEMENT_KUBECONFIG  kubeconfig of the management cluster
# EXEUNT_CLUSTER                name of the Cluster there
# EXEUNT_NAMESPACE              its namespace
#
# Rights there: get clusters; list, patch and delete machines of cluster.x-k8s.io.
set -eu

verb=${1:?get, stop or delete}
: "${EXEUNT_MANAGEMENT_KUBECONFIG:?is not set}" "${EXEUNT_CLUSTER:?is not set}" "${EXEUNT_NAMESPACE:?is not set}"

# call runs kubectl. A call that fails ends the script, a throttled one with 75.
call() {
	{ problem=$(kubectl --kubeconfig "$EXEUNT_MANAGEMENT_KUBECONFIG" --namespace "$EXEUNT_NAMESPACE" \
		--request-timeout 20s "$@" 2>&1 >&3) || fail "$problem"; } 3>&1
}

fail() {
	printf '%s\n' "$1" >&2
	case $1 in *"oo many requests"* | *TooManyRequests*) exit 75 ;; esac
	exit 1
}

answer() {
	echo "$1"
	exit 0
}

# check_cluster fails if Machines may be absent though their machines run: "clusterctl move" pauses the Cluster, then
# deletes its Machines here, then the Cluster. A paused Cluster ends no machine either.
check_cluster() {
	paused=$(call get clusters.cluster.x-k8s.io "$EXEUNT_CLUSTER" -o 'jsonpath={.spec.paused}')
	[ "$paused" != true ] || fail "Cluster $EXEUNT_CLUSTER is paused, or moves to another management cluster"
}

[ -n "$EXEUNT_PROVIDER_ID" ] || answer Foreign
fields='{.metadata.name}|{.metadata.uid}|{.apiVersion}|{.spec.infrastructureRef.kind}|{.metadata.deletionTimestamp}'
fields=$fields'|{.metadata.labels.cluster\.x-k8s\.io/cluster-name}|{.status.nodeRef.name}|{.spec.providerID}'
machines=$(call get machines.cluster.x-k8s.io -o "jsonpath={range .items[*]}$fields{\"\\n\"}{end}")
while IFS='|' read -r name uid version kind deleting cluster node id; do
	[ "$id" != "$EXEUNT_PROVIDER_ID" ] || break
done <<END
$machines
END
if [ "$id" != "$EXEUNT_PROVIDER_ID" ]; then
	check_cluster
	answer Gone
fi
[ "$cluster" = "$EXEUNT_CLUSTER" ] || answer Foreign
# A kubelet can register the providerID of another machine.
[ -z "$node" ] || [ "$node" = "$EXEUNT_NODE" ] || answer Foreign

case "$verb $kind" in
get\ *)
	[ -z "$deleting" ] || answer Stopping
	answer Running
	;;
delete\ *) ;;
"stop AWSMachine" | "stop AzureMachine" | "stop GCPMachine" | "stop Metal3Machine") ;;
stop\ *) # vSphere deletes the attached disks with the machine
	echo "$kind is not known to keep disks when its machine is deleted" >&2
	exit 3
	;;
*) fail "unknown call $verb" ;;
esac
check_cluster
# The UID in the patch and in the options: a Machine that has the name meanwhile is refused.
call patch machines.cluster.x-k8s.io "$name" --type merge --patch '{"metadata": {"uid": "'"$uid"'", "annotations": {
	"machine.cluster.x-k8s.io/exclude-node-draining": "",
	"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}}}' >/dev/null
if [ -z "$deleting" ]; then
	call delete --raw "/apis/$version/namespaces/$EXEUNT_NAMESPACE/machines/$name" -f - >/dev/null <<END
{"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "$uid"}}
END
fi
answer Stopping
