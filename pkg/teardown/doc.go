// Package teardown decides the next step of the teardown of a cluster, whose signal is the object Alive. It reads no
// clock and no API object.
//
//	package fate       what happens to a volume: kept, awaited, or its claim is deleted
//	package claim      when a claim, and when a pod that uses claims, is deleted
//	package balancer   what happens to Services, Ingresses, Gateways and VolumeSnapshots
//
// "#" is the row of the design. The first case that fits counts.
//
//	#      Alive      DT   spec                  state                       phase        decision
//	70     any        any  any                   another cluster             none         End, OtherCluster
//	66     unread     any  any                   any                         none         Wait, Unreadable
//	57     absent     any  any                   record says Complete        Complete     End, Completed
//	57     absent     any  any                   record does not             none         End, NotCompleted
//	50     present    no   protected             any                         Protected    Wait, Protected
//	63     present    no   no valid word         any                         Protected    Wait, NotConfirmed, Expired
//	       present    no   permitted             not ready                   Armed        Wait, NotReady
//	       present    no   permitted             ready                       Armed        Wait, AwaitingDeletion
//	       present    yes  any                   complete, finalizer gone    Complete     End, Completed
//	54     present    yes  any                   the CRD is being deleted    Stopped      Unfreeze, then Wait
//	53     present    yes  any                   our finalizer is gone       Stopped      Unfreeze, then Wait
//	56     present    yes  protected             any                         Stopped      Unfreeze, then Wait
//	52     present    yes  no valid word         any                         Stopped      Unfreeze, then Wait
//	64     present    yes  permitted             restored from a backup      Stopped      Wait, Paused
//	52,65  present    yes  permitted             not ready, no start         Stopped      Unfreeze, then Wait
//	61     present    yes  permitted             another runner leads        as it is     Wait, NotLeading
//	       present    yes  permitted             no freeze                   Preparing    WriteFreeze
//	62     present    yes  permitted             freeze not in force         Preparing    Wait, FreezePending
//	66     present    yes  permitted             a kind cannot be read       Preparing    Wait, Unreadable
//	       present    yes  permitted             no plan saved               Preparing    SavePlan
//	       present    yes  permitted             a kept volume is unmarked   Preparing    Keep
//	       present    yes  permitted             all is prepared             Preparing    Start
//	68     present    yes  permitted, started    no freeze, plan or mark     TearingDown  WriteFreeze, SavePlan, Keep
//	66     present    yes  permitted, started    a kind cannot be read       TearingDown  Wait, Unreadable
//	       present    yes  permitted, started    work is left, recorded      TearingDown  Record
//	10     present    yes  permitted, started    work is left                TearingDown  Delete, or Wait, Remaining
//	       present    yes  permitted, started    nothing is left             TearingDown  Recheck
//	       present    yes  permitted, started    nothing was left, twice     Complete     Record, then Release
//
// Each step that writes, and Recheck, is Confirm until kube-system and Alive were read live for it. A start is proven by
// condition Started and the saved plan: without the plan the checks and the plan come again before anything is deleted.
//
// What holds in every state:
//
//   - Nothing is deleted but for an Alive that is deleted, permitted, started and read in this batch, by the leader.
//   - Before the deletion of Alive nothing is written but its status.
//   - Our finalizer goes only once the record says Complete. The record says so only while nothing is known to be left.
//   - After Started the freeze stays: under it nothing fills a new volume while others are deleted.
package teardown
