package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/internal/program"
)

// stays are the flags of kube-controller-manager that belong to the controllers
// that stay there.
var stays = map[string]string{
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

// senseless are its flags that no controller of this program could obey. Each
// reason ends with what to do.
var senseless = map[string]string{
	"cloud-config":                    noCloud,
	"cloud-provider":                  noCloud,
	"external-cloud-volume-plugin":    noCloud,
	"cluster-name":                    "it names what a cloud provider makes, and this program makes nothing there; take it out here",
	"controllers":                     "this program runs exactly the three loops that it replaces; exclude those from --controllers of kube-controller-manager, and take the flag out here",
	"controller-start-interval":       "the loops of this program start at once, for they take no turns; take it out",
	"controller-shutdown-timeout":     "a worker finishes its object within three seconds, which is less than what is left of a lease; take it out",
	"emulated-version":                "this program has one version of its behaviour; pick it by --feature-gates or by the image",
	"min-compatibility-version":       "this program has one version of its behaviour, whatever that of the API server; take it out",
	"enable-leader-migration":         noMigration,
	"leader-migration-config":         noMigration,
	"flex-volume-plugin-dir":          "flex volumes are neither provisioned nor deleted by any loop of this program; leave it where it is and take it out here",
	"min-resync-period":               "there is no periodic pass over all objects: whoever waits is woken by the event that can help; take it out",
	"show-hidden-metrics-for-version": "no metric of this program was ever hidden; take it out",
	"use-service-account-credentials": "all loops run as one account, which has the rights of deploy/pv-controller/rbac.yaml and no more; take it out",
}

const (
	noCloud     = "this program talks to no cloud: its volumes are made by CSI drivers; leave it in kube-controller-manager and take it out here"
	noMigration = "these loops never move between two processes that run at once; stop one before the other, as docs/operations.md says, and take it out"
)

// refuse answers the flags of kube-controller-manager that this program does not serve.
func refuse(flags *pflag.FlagSet) {
	for name, why := range senseless {
		program.RefuseFlags(flags, why, name)
	}
	for controller, names := range stays {
		why := "it belongs to the " + controller + ", which stays in kube-controller-manager; leave it there and take it out here"
		program.RefuseFlags(flags, why, strings.Fields(names)...)
	}
}
