// Package compose puts kube-apiserver together: upstream's, with the storage of package gracestorage around that of
// custom resources while the gate CustomResourceGracefulDeletion is on.
//
//	aggregator's handler chain -> gracestorage.Handler
//	admission of custom resources -> gracestorage.Admission, the last plugin
//	storage of custom resources -> gracestorage.RESTOptionsGetter: codec and decorator
//
// With the gate off none of them is there, and the server is a stock one.
package compose
