// Package load is the load generator: the users of a scenario, and the ceiling, which makes the
// writes of the programs itself. It learns what happens from watches and sends no request that
// it does not count.
package load
