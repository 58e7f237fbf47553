// Package operator makes a directory for each Bucket, and takes part in the end of the cluster: a whole participant of
// Alive in plain client-go.
//
// A Bucket gets the finalizer, then its directory, and once only: a directory that was made and is gone is not made
// again. A deleted Bucket loses its directory, and then the finalizer. [Decide] has the table.
//
// For the end of the cluster the operator adds its finalizer to Alive before it makes a directory. A deletionTimestamp
// of Alive alone changes nothing. While alive.CleanUp is true it removes all directories, with a live read of Alive
// before each, and then its finalizer. One worker does everything, so that no directory is made meanwhile.
package operator
