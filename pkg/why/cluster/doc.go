// Package cluster reads a live cluster for "exeunt why", "status" and "rollback": single
// objects by GET, lists in pages, each list once. It writes nothing.
//
// Every answer has three values: present, absent, unseen. What could not be read is unseen,
// never absent, and is noted with the right that is missing (Reader.Incomplete). Times are
// compared with the clock of the API server (Reader.Now).
package cluster
