// Package leader runs work while this process holds a Lease, and ends the work before another
// process may lead. No write is sent over a connection on which an API server may answer whose etcd
// was restored from a backup: see [Connection].
package leader
