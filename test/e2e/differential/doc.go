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
//	await KIND NAME: a phase, "gone", or what the object must contain; null is absent
//	event KIND NAME: a reason, which is waited for
//	settle: lets an object of its own pass all queues
//
// The kinds are claim, volume, class, attributesclass, pod and node; "volume of C"
// is the one that was provisioned for the claim C or that it names. In the text,
// ${namespace} is the scenario's namespace and the prefix of its other names, ${name}
// the name of the object itself, ${driver} the CSI driver, ${dir} a directory for
// host paths, ${uid KIND NAME} and ${name KIND NAME} are those of another object.
// A scenario that is "alone" changes shared objects, such as default classes. With "gate:
// off", ours runs with HonorPVReclaimPolicy=false. "races" lists values that are not
// compared, because they depend on a race within one side.
//
// The messages of an event of both sides are compared by the key words in
// testdata/keywords.yaml.
//
// testdata/differences.yaml has the intended differences with their reasons. Any other
// difference fails the test, and so does an intended difference that does not occur.
// docs/differences.md is generated from these files.
package differential
