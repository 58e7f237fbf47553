package main

// The exit codes of commands that explain and audit. Of several results the highest
// counts.
const (
	exitError   = 1
	exitRefused = 4
)
