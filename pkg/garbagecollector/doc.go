// Package garbagecollector runs the decisions of package garbage in a cluster. It replaces
// garbage-collector-controller of kube-controller-manager. A [Collector] composes these parts; each uses those below it
// only, so that a garbage object goes from its event down to the DELETE:
//
//	part             does                                                              files
//	progressReports  events and counts about deletions that wait                       progress.go
//	worker           judges one object, decides, and executes one action               worker.go
//	cycles           releases owners that wait for each other                          cycles.go
//	writer, sender   delay, confirm and send a write                                   write.go, send.go
//	otherCollectors  looks for other garbage collectors                                othercollectors.go
//	barriers, reads  read every kind after a deletion was observed                     barriers.go, barrierreads.go
//	passes           record which deletions passed a barrier                           passes.go
//	kindDiscovery    finds the kinds to collect, every 30 s and when CRDs change       discovery.go, served.go
//	goneKinds        finds out whether a kind that discovery lacks is gone             gonekinds.go, definitions.go
//	liveReads        read single objects live                                          live.go, absence.go
//	watches          a reflector per kind, which feeds the graph and no store          watches.go, monitor.go
//	sharedGraph      the graph behind its mutex                                        graph.go
//	restore          ends the collector after a restore of etcd                        restored.go
//	slowKinds        send one request at a time for a kind that is slow                slow.go
//	Throttle         pauses all requests while the API server is overloaded            throttle.go
//
// One mutex guards the graph and what must change together with it; no request is sent under it, and no other mutex
// taken. Only the mutex of discovery is taken before it. Every write names the UID of the object, and the version
// that the decision rests on. A crash anywhere needs no repair: the next process lists the cluster and decides again.
package garbagecollector
