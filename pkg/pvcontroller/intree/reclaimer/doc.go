// Package reclaimer deletes and recycles volumes with in-tree plugins, in the workqueue
// "reclaims": it executes [plugin.Decide]. Package volume enqueues the volumes
// that are Released or Failed, so a slow plugin does not delay a phase.
//
//	enqueued by                                writes
//	package volume, recycler pods, pods that   phase Failed, in-tree finalizer, claimRef of a
//	finish, volumes that shared the data       recycled volume; recycler pods; deletes the object
//
// Before a plugin is called, the volume, its claim and its recycler pod are read from the
// API server. The success of a plugin is remembered by the UIDs of volume and claim, until the
// claim releases the volume again: a restored etcd may have brought both back. A failure, missing
// rights to recycle included, is retried with backoff, however often the volume is enqueued.
//
// The package also decides which component reclaims a volume ([Controller.Metadata]) and
// whether pv-protection must stay until then ([Controller.AwaitsReclaim]). Package volume
// writes both.
package reclaimer
