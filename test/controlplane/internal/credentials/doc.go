// Package credentials creates the certificates of a control plane and the kubeconfig files
// of its clients.
//
// An Authority is a certificate authority in two files. It signs server certificates and
// client certificates. With a client certificate a test acts as any user or service
// account: the API server takes the common name as the user and each organization as a
// group. No running control plane is needed.
package credentials
