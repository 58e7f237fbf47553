// Package serving serves health, metrics and profiles on a secure port, with the flags and
// rules of kube-controller-manager: the API server authenticates and authorizes requests,
// and everybody may read the health paths.
//
//	path       content
//	/healthz   whether the process should be restarted
//	/livez     the same
//	/readyz    whether the process could work; a standby with synced caches is ready
//	/metrics   metrics; /metrics/slis those of the health checks
//	/flagz     the value of every flag
//	/configz   the effective configuration, with feature gates and defaults
//	/debug/    profiles, and the verbosity of the log, which a PUT changes
//
// Of k8s.io/apiserver it uses authenticators, authorizers and certificates. The options
// package of k8s.io/apiserver has the same flags, and links a whole API server with etcd.
package serving
