// Package node decides the next step for one node that is deleted. It reads no clock and no API object.
//
// E is the time of package [github.com/exeunt-io/exeunt/pkg/deadline]. "drained" is: no awaited pod, no new pod for a
// while, no volume but those whose pods nobody waits for. "stuck" is a pod whose containers may run although nobody
// waits for it. "#" is the row of the design. The first case that fits counts.
//
//	#      owner      deleting  state                                    decision
//	60     others     any       not begun                                Wait, OwnedByOthers; Release if it has our finalizer
//	60     unreadable any       not begun                                Wait, ClaimsUnreadable
//	       ours       no        no finalizer                             Protect, LabelSet
//	07     unserved   no        finalizer                                Release, LabelRemoved
//	58     any        yes       begun, no finalizer                      Abandon
//	07,05  unserved   yes       not begun                                Release, NotServed
//	55     ours       yes       not begun, no provider, silent           HandOver, KubeletSilent
//	01     ours       yes       not begun                                Taint
//	53     any        yes       proof revoked, our taint                 Unmark, InstanceCameBack
//	42     any        yes       proof, pods                              Clean
//	42     any        yes       proof, volumes attached                  MarkOutOfService; then Wait, DetachNotStarted (#45)
//	44,56  any        yes       proof, detaching; Gone or no socket      Release
//	44     any        yes       proof, detaching; Off                    Wait, AwaitingVolumeDetachment
//	42     any        yes       proof, detached; Off                     DeleteInstance, then Release
//	50     any        yes       drained, detached, no stuck pod; socket  DeleteInstance; Release once Off or Gone
//	55,56  any        yes       the same; none, manual                   HandOver; Release, MachineRuns
//	51     any        yes       Off or Gone                              Confirm
//	42     any        yes       E, or drained with volumes or a stuck    Stop
//	                            pod; socket
//	43     any        yes       the same, Stop is not supported          Wait, DisksAttached; DeleteInstance without a volume
//	52,57  any        yes       the same; Unseen, Foreign, Shared        Wait
//	55,56  any        yes       the same; none, manual                   HandOver; Wait, AwaitingPowerOff
//	       any        yes       else                                     Wait for pods, volumes, new pods
//
// What holds in every state:
//
//   - No pod is removed and no volume is detached by force before the proof.
//   - The machine is not deleted while a volume is attached, nor while it is not known whose it is.
//   - The machine is stopped only from E, or once nothing is awaited, and only if the node is deleted and ours.
//   - A Node that is not deleted, or is not ours, is not touched but for our finalizer.
//   - With a provider, a Node is not released while a container of a stuck pod may run.
package node
