// Package program holds what both programs do the same way before their
// controllers start: flags, clients, events and leader election. It decides
// nothing about volumes.
package program
