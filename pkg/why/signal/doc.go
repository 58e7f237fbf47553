// Package signal explains Alive, the signal that the whole cluster goes away, and what the freeze of its teardown refuses.
//
// Alive waits for the runner, which holds the Lease exeunt-teardown, and for each participant, which removes its own
// finalizer. The first case that fits counts.
//
//	Alive                                                    reason              verdict
//	not deleted, protected or without a valid word           ClusterProtected    none
//	not deleted, permitted                                   TeardownArmed       none
//	deleted, its CRD is being deleted                        TeardownStopped     stuck
//	deleted, protected or without a valid word               TeardownStopped     stuck
//	deleted, the status says Paused, NotReady, RightsMissing TeardownStopped     stuck
//	deleted, permitted, a runner leads                       TeardownRuns        waiting, and what its objects wait for
//	deleted, permitted                                       as of the runner    gone: stuck, unseen: unknown
//
//	participant                                              reason              verdict
//	may not clean up, the teardown is stopped                TeardownStopped     stuck
//	may not clean up yet                                     TeardownRuns        waiting
//	reports an error now                                     ControllerFails     stuck
//	nothing runs, or is to run, in its namespace             ControllerGone      stuck
//	all that is to run in its namespace is ready             ControllerActs      waiting
//	anything else                                            ControllerUnseen    unknown
package signal
