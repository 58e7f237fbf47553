// Package scenarios runs pods with volumes on a real node, with our programs and with
// upstream's: kubelet and containerd run on this machine, and the programs of both sides
// run as pods, from the manifests that administrators apply. Node termination is run on
// several nodes, whose machines node-terminator turns off.
package scenarios
