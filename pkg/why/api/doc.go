// Package api explains the deletion of namespaces, definitions of custom resources, owners and dependents, and the writes that the API server refuses.
package api
