package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/internal/program"
)

// otherControllers are the flags of kube-controller-manager, by the controller that they
// configure, whose controllers stay there.
var otherControllers = map[string]string{
	"certificatesigningrequest-signing-controller": "cluster-signing-cert-file cluster-signing-duration cluster-signing-key-file " +
		"cluster-signing-kube-apiserver-client-cert-file cluster-signing-kube-apiserver-client-key-file " +
		"cluster-signing-kubelet-client-cert-file cluster-signing-kubelet-client-key-file " +
		"cluster-signing-kubelet-serving-cert-file cluster-signing-kubelet-serving-key-file " +
		"cluster-signing-legacy-unknown-cert-file cluster-signing-legacy-unknown-key-file",
	"cronjob-controller":                 "concurrent-cron-job-syncs",
	"daemonset-controller":               "concurrent-daemonset-syncs",
	"deployment-controller":              "concurrent-deployment-syncs",
	"device-taint-eviction-controller":   "concurrent-device-taint-eviction-syncs",
	"endpoints-controller":               "concurrent-endpoint-syncs endpoint-updates-batch-period",
	"endpointslice-controller":           "concurrent-service-endpoint-syncs endpointslice-updates-batch-period max-endpoints-per-slice",
	"endpointslice-mirroring-controller": "mirroring-concurrent-service-endpoint-syncs mirroring-endpointslice-updates-batch-period mirroring-max-endpoints-per-subset",
	"ephemeral-volume-controller":        "concurrent-ephemeralvolume-syncs",
	"garbage-collector-controller":       "concurrent-gc-syncs enable-garbage-collector",
	"horizontal-pod-autoscaler-controller": "concurrent-horizontal-pod-autoscaler-syncs horizontal-pod-autoscaler-cpu-initialization-period " +
		"horizontal-pod-autoscaler-downscale-stabilization horizontal-pod-autoscaler-initial-readiness-delay " +
		"horizontal-pod-autoscaler-sync-period horizontal-pod-autoscaler-tolerance",
	"job-controller": "concurrent-job-syncs",
	"legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-clean-up-period",
	"namespace-controller":                           "concurrent-namespace-syncs namespace-sync-period",
	"node-ipam-controller": "allocate-node-cidrs cidr-allocator-type cluster-cidr " +
		"node-cidr-mask-size node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6 service-cluster-ip-range",
	"node-lifecycle-controller": "large-cluster-size-threshold node-eviction-rate node-monitor-grace-period node-startup-grace-period " +
		"secondary-node-eviction-rate unhealthy-zone-threshold",
	"node-route-controller":                       "configure-cloud-routes route-reconciliation-period",
	"persistentvolume-attach-detach-controller":   "attach-detach-reconcile-sync-period disable-attach-detach-reconcile-sync disable-force-detach-on-timeout",
	"cloud-node-lifecycle-controller":             "node-monitor-period",
	"pod-garbage-collector-controller":            "terminated-pod-gc-threshold",
	"replicaset-controller":                       "concurrent-replicaset-syncs",
	"replicationcontroller-controller":            "concurrent-rc-syncs",
	"resourceclaim-controller":                    "concurrent-resourceclaim-syncs",
	"resourcequota-controller":                    "concurrent-resource-quota-syncs resource-quota-sync-period",
	"service-lb-controller":                       "concurrent-service-syncs",
	"serviceaccount-controller":                   "concurrent-serviceaccount-token-syncs root-ca-file service-account-private-key-file",
	"statefulset-controller":                      "concurrent-statefulset-syncs",
	"ttl-after-finished-controller":               "concurrent-ttl-after-finished-syncs",
	"validatingadmissionpolicy-status-controller": "concurrent-validating-admission-policy-status-syncs",
}

// inapplicable are the flags of kube-controller-manager without a meaning here. Each reason
// ends with the action to take.
var inapplicable = map[string]string{
	"cloud-config":                    noCloud,
	"cloud-provider":                  noCloud,
	"external-cloud-volume-plugin":    noCloud,
	"cluster-name":                    "it names resources of a cloud provider, and this program creates none; remove it here",
	"controllers":                     "this program runs exactly the three loops that it replaces; exclude those from --controllers of kube-controller-manager, and remove the flag here",
	"controller-start-interval":       "the loops of this program start at the same time; remove it",
	"controller-shutdown-timeout":     "a worker finishes its object within three seconds, less than the rest of an unrenewed lease; remove it",
	"emulated-version":                "each version of this program has one behavior; choose it by --feature-gates or by the image",
	"min-compatibility-version":       "this program behaves the same with every version of the API server; remove it",
	"enable-leader-migration":         noMigration,
	"leader-migration-config":         noMigration,
	"flex-volume-plugin-dir":          "this program neither provisions nor deletes flex volumes; leave it where it is and remove it here",
	"min-resync-period":               "this program has no periodic resync of all objects: events enqueue waiting objects; remove it",
	"show-hidden-metrics-for-version": "no metric of this program was ever hidden; remove it",
	"use-service-account-credentials": "all loops share one service account with the rights of deploy/pv-controller/rbac.yaml; remove it",
}

const (
	noCloud     = "this program calls no cloud provider: CSI drivers create its volumes; leave it in kube-controller-manager and remove it here"
	noMigration = "these loops cannot migrate between two running programs; stop one before the other, as docs/install.md says, and remove it"
)

// refuseFlags registers the flags of kube-controller-manager that this program refuses.
func refuseFlags(flags *pflag.FlagSet) {
	for name, why := range inapplicable {
		program.RefuseFlags(flags, why, name)
	}
	for controller, names := range otherControllers {
		why := "it belongs to the " + controller +
			", which stays in kube-controller-manager; leave it there and remove it here"
		program.RefuseFlags(flags, why, strings.Fields(names)...)
	}
}
