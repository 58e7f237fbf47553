// Package differential runs scenarios against the pv-controller and against the
// three loops of the real kube-controller-manager that it replaces, each side in
// a cluster of its own, and compares the objects, the phases in watches and the events.
//
// A scenario is data: testdata/scenarios has a file per topic. Its steps are
//
//	create KIND NAME: changes to the defaults of that kind (testdata/defaults.yaml)
//	patch KIND NAME: a merge patch
//	status KIND NAME: a merge patch of the status
//	delete KIND NAME:
//	await KIND NAME: a phase, "gone", or values of the object; null is an absent value
//	event KIND NAME: waits for an event with this reason
//	sync: waits until both sides have reconciled all earlier objects
//
// The kinds are claim, volume, class, attributesclass, pod, node and recycler (the
// recycler pod of a volume). "volume of C" is the volume that the claim C names, or the
// volume provisioned for C. In values, ${namespace} is the namespace of the scenario and
// the prefix of cluster-scoped names, ${name} the name of the object itself, ${driver} the
// CSI driver, ${dir} a directory for host paths; ${uid KIND NAME} and ${name KIND NAME}
// are the UID and the name of another object.
// A scenario with "alone" changes shared objects, such as default classes, and runs while
// no other such scenario runs. With "gate: off", ours runs with HonorPVReclaimPolicy=false.
// "races" lists values that are not compared, because they depend on a race within one side.
//
// Event messages of both sides must contain the same key words of testdata/keywords.yaml.
//
// testdata/differences.yaml has the intended differences with their reasons. Any other
// difference fails the test, and so does an intended difference that does not occur.
// docs/differences.md lists them.
package differential
