// Package programs tests our programs as processes:
//
//   - flags, input errors, metrics, serving, secrets in logs, the demo
//   - leader: leader election, standby and crashes of the leader
//   - faultproxy: the programs behind proxies that inject faults
package programs
