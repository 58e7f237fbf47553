// Package manifests tests the kustomizations and the chart in deploy/: it renders them with
// the libraries of kustomize and helm, and applies them to a real API server in a dry run.
// It is its own module because of these libraries.
//
// EXEUNT_BIN names the folder of the programs; the default is bin of this checkout.
package manifests
