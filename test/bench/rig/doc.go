// Package rig starts and stops what is measured: one control plane, and by turns the programs
// of one side. It reads their CPU time and memory, and the counters of the API server and of
// the driver.
//
// All clients authenticate by tokens: a client certificate is verified anew in each request.
// There is no audit log.
package rig
