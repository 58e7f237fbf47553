// Controlplane runs etcd and the real kube-apiserver in one process, on free
// loopback ports, for demos and tests.
//
//	controlplane --data-dir D --kubeconfig-out F
//
// It serves until SIGTERM or SIGINT. Once clients can use it, it prints one line,
//
//	controlplane: ready https://127.0.0.1:PORT
//
// and all other output goes to stderr. Without --data-dir it uses a temporary directory and
// removes the directory at the end.
//
//	controlplane --kube-apiserver PATH
//
// runs the kube-apiserver at the path in a process of its own, with the same certificates and flags. The
// log is kube-apiserver.log in the data directory.
//
//	controlplane kubeconfig --data-dir D --user NAME --out F
//
// writes a kubeconfig for any user or service account, whether the control
// plane runs or not.
//
//	controlplane etcd --data-dir D
//
// runs etcd alone. It prints "controlplane: etcd ENDPOINT", and the endpoint is for the flag
// --etcd of a control plane in another process.
//
//	controlplane restore --data-dir D --from E --bump-revision N
//
// restores etcd from a copy of its directory, as etcdutl does, while the control plane is stopped.
//
// There are no kubelet, no scheduler and no controllers: clients write the status of pods,
// and namespaces get no service account.
package main
