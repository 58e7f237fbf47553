// Package serving answers for health and metrics on a secure port, with the flags
// and the rules of kube-controller-manager: the API server says who asks and
// whether he may, and the health paths are open to everybody.
//
//	path       says
//	/healthz   whether the process should go on; a failure is a reason to restart it
//	/livez     the same
//	/readyz    whether it could work now; a standby that waits for the lease is ready
//	/metrics   metrics; /metrics/slis those of the checks themselves
//	/flagz     the value of every flag
//	/configz   the effective configuration, gates and defaults included
//	/debug/    profiles, and the verbosity of the log, which a PUT changes
//
// The package stands beside program, not in it: k8s.io/apiserver, which it needs,
// is no part of programs that serve otherwise.
package serving
