// Package backend says whether the service behind a webhook or an aggregated API can
// answer, from its endpoints, pods and workloads.
//
//	Unseen   something could not be read
//	Absent   the service does not exist
//	Stopped  no endpoint is ready, no pod runs, and no workload wants a replica
//	Crashing no endpoint is ready, and the pods report an error now
//	Unready  no endpoint is ready, and nothing tells why
//	Starting no endpoint is ready, and a pod is starting
//	Ready    an endpoint is ready
package backend
