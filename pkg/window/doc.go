// Package window deletes custom resources with a grace period at any API server, as the API server with graceful
// deletion does (KEP-5673): "exeunt delete". Which server gets a request is not known: ours, ours with the gate off, or
// that of upstream beside it. There is one order of requests: the DELETE, a read, and whatever the deadline still needs.
// Our server has moved the deadline; if another one had the DELETE, the annotation of the deletion window is written,
// or the DELETE is sent again, by turns, because either may reach a server for which it does nothing.
//
// A DELETE at upstream's server must never find a deadline that it would end. So a living object has the annotation
// before the DELETE, with an end that is a minute later than requested: that is the longest time from the start of an
// annotation to a deletion for which it counts, and no DELETE can be so slow that it uses up the grace period. And
// nothing is sent for an object whose grace period no annotation holds.
//
//	existing       finalizers    request              before the DELETE      after it, if the deadline is later
//	live           held          0, > 0               Annotate, Delete       Annotate or Delete
//	live           held          none                 Unannotate?, Delete    Nothing
//	live           none left     any                  Delete                 Nothing
//	plain          held          0                    Delete                 Annotate or Delete
//	plain          held          > 0; none            Refuse; Nothing
//	graceful       held          0                    Delete                 Annotate or Delete
//	graceful       held          earlier              Delete, or Refuse      Annotate or Delete
//	graceful       held          not earlier; none    Refuse; Nothing
//	forced         held          > 0; 0, none         Refuse; Nothing
//	deleting       none left     any                  Delete                 Nothing
//
// [Decide] asks package graceful, so that both worlds have one rule. What holds in every state:
//
//   - No annotation moves a deadline later, and none but that of force ends where it starts.
//   - Without a grace period in the request no annotation is written.
//   - The clock of this machine is not read: the window begins at the time of the API server.
//   - Each write names the UID that was read. An object of the same name that replaced it is not touched.
//   - The DELETE of a living object names the version that has the annotation: whoever removes or changes it in between
//     makes the DELETE fail, and the object is read again.
package window
