// Package demo shows KEP-2644 at work on a real API server: a PersistentVolume
// is deleted before its claim, once with the gate HonorPVReclaimPolicy on and
// once with it off, while a timeline says who did what and how many volumes
// the storage system has. It also starts the cluster of "exeunt sandbox".
//
// Nothing on the timeline is told from memory. Every line has a source:
//
//	kind    source                              time
//	step    the demo, before it does something  now
//	check   the same, to be sure of the verdict now
//	note    what a step found                   now
//	write   the audit log of the API server     when the request was received
//	call    the call log of the driver          when the call was finished
//	state   a watch of volumes and claims       when the event arrived
//
// A write has the time it was received at, so that it comes before what it
// causes. The sources run apart by milliseconds, so the timeline holds every
// line back for a moment and shows them in order of time.
//
// The verdict is what the driver itself lists, over its socket, once both
// controllers have ended: nobody is left who could change it. With the gate off
// a second claim, deleted in the usual order, has by then been reclaimed. The
// queues that could have reclaimed the first volume have therefore passed it.
package demo
