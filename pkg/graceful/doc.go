// Package graceful decides what a request does to the deletion of a custom resource (KEP-5673). Package
// [github.com/exeunt-io/exeunt/pkg/graceful/deadline] is for controllers: it reads the deadline of an object.
//
// The request is a DELETE, or any other write. "#" is the row of the design, K the row of the KEP's scenario matrix.
// "none" is a DELETE without gracePeriodSeconds; "earlier" and "not earlier" compare the requested deadline with that
// of the object. Finalizers are those after the request.
//
//	#      existing       finalizers    request           decision                                K
//	1      live           held, added   none              SetPlain, NoGraceRequested              1
//	2      live           held          0                 SetForced, ForceRequested               2
//	3      live           held          > 0               SetDeadline, Granted                    3
//	4      live           added         0; > 0            SetPlain, NoFinalizer; NeedsFinalizer   5, 6
//	4      live           none left     none; 0; > 0      Leave, NoFinalizer; NeedsFinalizer      4 to 6
//	5      graceful       held          none              Keep, DeadlineKept                      7
//	6      graceful       held          0                 SetForced, ForceRequested               8
//	7      graceful       held          earlier           SetDeadline, Shortened                  9
//	8      graceful       held          not earlier       Keep, NeverLater                        9
//	9      plain          held          none              Leave, AlreadyPlain                     7
//	10     plain          held          0                 SetForced, ForceRequested               8
//	11     plain          held          > 0               Leave, OnlyForceShortens                9
//	12     forced         held          0                 Keep, ForceRequested                    8
//	12     forced         held          none; > 0         Keep, AlreadyForced                     7, 9
//	13     deleting       none left     any               Remove, NoFinalizerLeft                 10 to 12
//	15     live, plain    held          0, > 0, no room   as without a grace period, NoRoom
//	17     graceful       held          0, earlier; full  Keep, NoRoom
//	16     deleting       added         any               no deadline changes, NeedsFinalizer if a grace period was requested
//	30,31  deleting       none left     other write       Remove, NoFinalizerLeft
//	33,37  deleting       any           other write       Keep, DeadlineKept
//	37     deleting       any           other, no room    Reject, NoRoom
//	38     live           any           other write       Leave, NotDeleted
//
// What holds in every state:
//
//   - No action moves a deadline later, and none but SetForced and SetDeadline moves a deadline.
//   - A deletion is forced only by a request with 0.
//   - Without a grace period in the request nothing changes but what a stock API server changes too.
//   - An object without finalizers never waits for its deadline.
//
// The package reads no clock and no API object; the API server fills in the [State].
package graceful
