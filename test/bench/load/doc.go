// Package load measures scenarios on one cluster: a control plane, and by turns the programs of one
// side. The load generator plays the users of a scenario, and the ceiling, which sends the fewest
// requests that could do it. It learns what happens from watches and sends no request that it does
// not count. CPU time, memory and the counters of API server and driver are read before and after.
//
// All clients authenticate by tokens: a client certificate is verified anew in each request.
// There is no audit log.
package load
