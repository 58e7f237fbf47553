// Package program holds what all programs share before their controllers start: flags, API
// clients and signals. It decides nothing about volumes.
package program
