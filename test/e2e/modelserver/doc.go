// Package modelserver compares test/model/server with a real kube-apiserver: both get
// the same requests, and must answer alike.
package modelserver
