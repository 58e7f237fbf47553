// Package provisioning makes volumes for claims: it executes what
// [provision.Decide] decides. It alone calls CreateVolume, creates volumes and puts
// the finalizer Provisioning on claims.
//
// A claim is looked at when it changes, and when a volume made for it goes away
// before it was bound. Before the driver is asked, the claim is held and read live;
// what the driver has answered is remembered by the claim's UID until it is
// recorded, so that a failed write is retried without another call. A restart
// forgets that, and asks again for every claim that is held.
//
// One worker at a time has a volume's name, shared with pkg/controller/deletion:
// CreateVolume and DeleteVolume of one volume never overlap.
//
// The caches of claims and volumes have those that concern the driver ([Names]), and
// no others: what is about another driver's object is read from the API server.
package provisioning
