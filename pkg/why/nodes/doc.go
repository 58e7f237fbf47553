// Package nodes explains the deletion of pods and nodes.
package nodes
