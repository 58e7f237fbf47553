// Package window deletes custom resources with a grace period at any API server, as the API server with graceful
// deletion does (KEP-5673): "exeunt delete". At an API server of upstream the annotation of the deletion window is
// written before the DELETE, in one state:
//
//	existing       finalizers    request              at stock                     at ours
//	live           held          0, > 0               Annotate                     Delete
//	live           held          none                 Unannotate, or Delete        Delete
//	live           none left     any                  Delete                       Delete
//	plain          held          0                    Annotate                     Delete
//	plain          held          > 0; none            Refuse; Nothing              the same
//	graceful       held          0, earlier           Annotate                     Delete
//	graceful       held          not earlier; none    Refuse; Nothing              the same
//	forced         held          > 0; 0, none         Refuse; Nothing              the same
//	deleting       none left     any                  Delete                       Delete
//
// [Decide] asks package graceful, so that both worlds have one rule. What holds in every state:
//
//   - No annotation moves a deadline later, and none but that of force ends where it starts.
//   - Without a grace period in the request no annotation is written.
//   - The clock of this machine is not read: the window begins at the time of the API server.
//   - Each write names the UID that was read. An object of the same name that replaced it is not touched.
package window
