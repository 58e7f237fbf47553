// Package demo shows KEP-2644 at work on a real API server: a PersistentVolume
// is deleted before its claim, once with the gate HonorPVReclaimPolicy on and
// once with the gate off. A timeline shows which program did what, and how many
// volumes the storage system has. The package also starts the cluster of
// "sandbox".
//
// Every line of the timeline comes from a source outside of the demo's own memory:
//
//	kind    source                              time
//	step    the demo, before it does something  now
//	check   the same, to confirm the verdict    now
//	note    what a step found                   now
//	write   the audit log of the API server     when the request was received
//	call    the call log of the driver          when the call was finished
//	state   a watch of volumes and claims       when the event arrived
//
// A write line says what the write changed: the audit log has the response to each write, and
// the timeline compares it with the version before. A state line is printed only if no write
// says it: in practice, that an object is gone.
//
// A write has the time at which it was received, so that it comes before its
// effects. The sources differ by milliseconds, so the timeline delays every line
// for a moment and shows the lines in order of time.
//
// The verdict is the list of volumes of the driver itself, read over its socket
// once both controllers have ended, so that no program can change the list. With
// the gate off a second claim, deleted in the usual order, has been reclaimed by
// then: the queues that could have reclaimed the first volume have processed it.
package demo
