// Package provisioning makes volumes for claims: it is the provisioner that the
// library sig-storage-lib-external-provisioner calls. The library keeps the queue
// of claims, asks again while an outcome is unknown, and creates the objects; the
// request, the object and the meaning of an error come from pkg/provision.
package provisioning
