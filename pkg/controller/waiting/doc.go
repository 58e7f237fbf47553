// Package waiting tells users about deletions that wait, with the event DeletionWaiting and
// with two metrics:
//
//	metric                                     label    value
//	exeunt_deletion_waiting                    blocker  deletions that have waited for 30 s
//	exeunt_deletion_waiting_oldest_seconds     blocker  age of the oldest of them
//
// A reconciler that decides to wait calls [Tracker.Wait]; it calls [Tracker.Clear] once the
// deletion goes on, and [Tracker.Forget] once the object is gone. The [Tracker] requeues the
// object after the delay and executes [blocker.DecideEvent]. A deletion that ends within the
// delay costs no request. Only deletions that wait are remembered.
//
// The delay and the interval count from when this process first saw the wait, so that the
// clock of another machine does not matter and a new leader starts anew. [Sink] remembers
// the namespaces that take no events because they are being deleted.
package waiting
