// Package printer prints the reports of "exeunt why": as a tree in text of 80 columns, JSON,
// YAML or names. Text from the cluster is escaped: it cannot control the terminal.
package printer
