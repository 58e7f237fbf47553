// Package differential runs scenarios against the pv-controller and against the
// three loops of the real kube-controller-manager that it replaces, each side in
// a cluster of its own, and compares what became of the objects, the phases that
// a watch saw and the events.
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
// ${scene} is the scenario's namespace and the prefix of its other names, ${name}
// the name of the object itself, ${driver} the CSI driver, ${dir} a directory for
// host paths, ${uid KIND NAME} and ${name KIND NAME} are those of another object.
// A scenario that is "alone" touches what all share, such as default classes; one
// with "gate: off" runs ours with HonorPVReclaimPolicy=false. "races" is what one
// side alone can have either way, so that it is not compared.
//
// The messages of an event that both sides show are compared by the key words that
// testdata/keywords.yaml lists for it.
//
// Where the two sides differ on purpose, testdata/differences.yaml says so, with
// the reason. A difference that is not named there fails the test, and so does a
// named one that does not occur. docs/differences.md is made of these files.
package differential
