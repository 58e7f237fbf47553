// Package blocker says why the deletion of an object waits: on which object or
// controller, since when, by which evidence, and what to do next. "exeunt why", the event
// DeletionWaiting and the metrics of both programs share its types.
//
// The reason says what is waited for, the verdict whether it will come:
//
//	Gone     the object does not exist, or never existed
//	None     no deletion was requested
//	Waiting  the blocker was seen alive, and reports no error: it will act. Or a grace period
//	         has not ended
//	Unknown  nothing shows that the blocker will act, and nothing shows that it will not
//	Stuck    evidence shows that waiting does not help: an error reported now, a
//	         controller proven gone, or a rule of the API. Age alone is no evidence
//
// The verdict of a tree is its worst verdict: stuck before unknown before waiting.
package blocker
