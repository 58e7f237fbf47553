// Package machines is a small cloud for tests: machines that are nodes of a real API server, whose kubelets,
// pods and disks are simulated, and whose power is real to the program that asks for it.
//
//   - [Cloud] has machines and disks. What is true of them is kept apart from what the API says.
//   - A machine registers its Node, renews its Lease, and runs the pods that are bound to it as a kubelet does:
//     volumes attached, mounted, started, SIGTERM, SIGKILL, unmounted, DELETE with grace period 0.
//   - The attacher answers the VolumeAttachments of [DriverName].
//   - A scheduler binds pending pods to ready nodes, by node selector, required node affinity and taints.
//   - The socket of [Config] gets, stops and deletes machines, see pkg/nodeterminator/instances.
//   - A file of faults makes kubelets, machines, disks and the socket fail, see [Fault].
//
// Everything that happens is a line in the log, see [Event]. A kubelet counts as the real one does: grace periods begin
// when the kubelet sees the deletion, only get shorter, begin anew when they do, and are 2 s at least.
//
// What is not simulated: containers that restart, hooks, probes, images, evictions by the kubelet.
package machines
