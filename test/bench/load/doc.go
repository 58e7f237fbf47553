// Package load is the load generator: the users of a scenario, and the ceiling, which sends the fewest
// requests that could do it. It learns what happens from watches and sends no request that it does
// not count.
package load
