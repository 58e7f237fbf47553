// Package docs holds the documents. Those that repeat a table of the code are generated.
package docs

//go:generate go test -count=1 -run TestGeneratedDocuments . -args -write
