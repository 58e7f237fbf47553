// Package window deletes custom resources with a grace period at any API server, as the API server with graceful
// deletion does (KEP-5673): "exeunt delete". Which server gets a request is not known: ours, ours with the gate off, or
// that of upstream beside it. So a living object has the annotation of the deletion window before the DELETE, and our
// server writes its own instead. An object that is being deleted gets the DELETE first: our server moves the deadline,
// upstream's changes nothing, and a read tells which.
//
//	existing       finalizers    request              before the DELETE      after it, if the deadline is as before
//	live           held          0, > 0               Annotate, Delete       Refuse: not deleted
//	live           held          none                 Unannotate?, Delete    Refuse: not deleted
//	live           none left     any                  Delete                 Refuse: not deleted
//	plain          held          0                    Delete                 Annotate
//	plain          held          > 0; none            Refuse; Nothing
//	graceful       held          0, earlier           Delete                 Annotate; Refuse if it is in the field
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
