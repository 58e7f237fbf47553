// Package instances is the protocol between node-terminator and the program that turns machines off.
//
// The program listens on a unix socket and answers HTTP requests. Each has the fields of an [Instance]:
//
//	POST /v1/get | /v1/stop | /v1/delete   {"providerID": "...", "node": "...", "nodeUID": "...", "addresses": ["..."]}
//	200                                    {"state": "Running|Stopping|Off|Gone|Foreign"}
//	400 and above                          {"error": "...", "unsupported": true, "retryAfterSeconds": 5}
//
// # Contract of a Provider
//
// Each call is idempotent: node-terminator repeats it after a failure, a lost answer and a change of its leader. Each
// first checks that the machine has the tag of this cluster. If the machine lacks the tag, nothing is done, and the
// answer is [Foreign]: a kubelet can register any providerID.
//
//	call    does                                                 an error instead
//	Get     reads the state, never from a cache                  the state is unknown
//	Stop    ends the machine within a minute and keeps every     Unsupported: a disk that Kubernetes attached would be
//	        disk that Kubernetes attached; answers at once,      deleted with the machine, or nothing ends the machine
//	        Stopping as long as the machine may write
//	Delete  removes the machine, with disks that belong to it;   Unsupported: nothing removes machines
//	        never called while a volume is attached
//
// After [Off] and [Gone] node-terminator lets other machines attach the disks. A provider that answers either of them
// for a machine that runs gives a disk two writers. So it answers Off or Gone only if its backend says so, and an error
// if the backend does not answer. Delete of a machine that cannot be removed, such as bare metal, turns it off.
//
// # Socket
//
// Who may write to the socket can turn machines off; who may replace the socket can lie about them. [Listen] creates it
// with mode 0600. The client refuses a socket whose mode lets others write, and one below a directory that others may
// write. Such a directory is accepted if it has the sticky bit, and if its entry on the way to the socket belongs to
// root or to the user of this process. An emptyDir has mode 0777 and is refused; with medium: Memory it has the sticky bit.
// The check precedes each call.
package instances
