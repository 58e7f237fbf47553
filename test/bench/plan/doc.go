// Package plan says which scenarios are measured, and in which order the sides take turns.
// A scenario is one entry of the table in scenarios.go.
package plan
