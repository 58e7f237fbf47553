// Package credentials makes the certificates of one control plane and the
// kubeconfig files of those who talk to it.
//
// An Authority is a certificate authority kept in two files. It signs server
// certificates and the client certificates of an Identity, which is how a test
// becomes any named user or service account: the API server takes the common
// name as the user and each organization as a group.
//
// The package holds no secrets of its own and knows no control plane: it works
// whether one runs or not.
package credentials
