// Package program holds what both programs share before their controllers start: flags,
// API clients, events and leader election. It decides nothing about volumes.
package program
