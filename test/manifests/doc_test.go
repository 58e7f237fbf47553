// Package manifests tests what administrators install: the kustomizations and the
// chart in deploy/ are rendered as kustomize and helm do it, and given to a real API
// server in a dry run. It is a module of its own, for those two libraries.
//
// The programs are those in the directory that EXEUNT_BIN names; without that, those
// that make has built.
package manifests
