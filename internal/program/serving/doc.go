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
// Flags, listener, certificates, authentication and authorization are those of
// k8s.io/apiserver/pkg/server/options. Ours are paths, health checks, and errors that name
// the flag.
package serving
