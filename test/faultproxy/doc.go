// Package faultproxy is a reverse proxy between one program and the API server that
// injects faults. A soak test gives each program a proxy of its own:
//
//	proxy, err := faultproxy.New(faultproxy.Config{Program: "provisioner-0", Upstream: config, Seed: seed})
//	err = proxy.Start()
//	err = proxy.Kubeconfig(file) // for the program
//	proxy.SetRates(faultproxy.Rates{Faults: map[faultproxy.Kind]float64{faultproxy.CutAfter: 0.01}})
//
// The proxy forwards with the credentials of Upstream, which are those of the program, so
// RBAC stays as it is. The program reaches the proxy by HTTPS with HTTP/2, as it reaches
// an API server.
//
// A test that holds, answers or changes some requests by itself adds Wrap and Change to the
// configuration. A DelayProxy delays bytes and does not look into them.
//
// # Decisions
//
// Each decision is a function of the seed, the program, the verb, resource, selectors,
// namespace and name of the request, and its ordinal among such requests. Timing has no
// part in it: the same requests meet the same faults in a run with the same seed. UIDs in
// names are not part of the decision, for they differ between runs. For an open watch,
// a decision is made once per tick.
//
// # What is realistic
//
// Every fault is one that an API server and a network can cause:
//
//   - Conflict: another client wrote first. Only for PATCH, and for PUT with a
//     resourceVersion: no other request can meet this conflict. The request has no effect.
//   - TooManyRequests: priority and fairness refuses the request, with Retry-After.
//     TooManyRequestsBare: a load balancer refuses the request, without Retry-After.
//   - InternalError: etcd has no leader, or a webhook fails. Unavailable: the API server
//     stops. Timeout: etcd is slow. The request has no effect.
//   - UnknownPath: a load balancer has another server behind the address of the API server.
//     Only for requests that name an object, whose absence the answer must not prove.
//   - DeniedNotFound, DeniedConflict, DeniedInvalid, DeniedForbidden, DeniedGone: an admission
//     webhook denies a write, with a code of its choice. Only for writes that name an object.
//   - CutBefore: the network loses the request. CutAfter: the network loses the answer to
//     a write that took effect.
//   - ErrorAfter, TimeoutAfter: etcd committed the write and its answer came too late for
//     the API server. TimeoutAfter is also the answer of the API server's own deadline.
//   - DelayRequest, DelayAnswer, SlowList: a slow network or API server.
//   - StaleList: the watch cache of another replica of the API server is behind. Only for
//     lists that allow this: resourceVersion=0 may be answered with any former state, and
//     resourceVersion=N, not older, with the state at N or any later state. The API server
//     itself returns the former state, so all objects in the list fit together. A list
//     without a resourceVersion is a quorum read and never stale.
//   - TooLargeVersion: the same replica refuses a read of a version it has not seen.
//   - Gone: etcd was compacted. Only for a watch from a version and for the next page of a
//     list. HTTP 410 for a watch is what older and aggregated API servers answer.
//   - WatchExpired: the same, as an event in the stream.
//   - WatchDrop: the API server ends the watch: a timeout or a slow reader. WatchCut: the
//     network cuts the stream within an event.
//   - WatchStall: the network or the watch cache is slow. All events arrive, in order.
//   - Disconnect: a load balancer or NAT drops the connection: every request and watch in
//     the connection is lost, before or after its effect.
//   - Outage: the API server restarts. Pause: a partition that drops packets.
//   - Without the watch list (Config.NoWatchList): an API server with the feature WatchList
//     off answers 422, and clients list instead.
//
// The proxy never changes, reorders, repeats or invents objects, answers no read with a
// state that the API server never had, and never reports an effect that did not happen.
package faultproxy
