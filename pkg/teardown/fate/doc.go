// Package fate decides what a teardown does to a PersistentVolume. It reads no clock and no API object.
//
// "#" is the row of the design. The first case that fits counts.
//
//	#      preserved  policy    provisioned  shared, below  claim             decision
//	05     any        any       any          shared         any               Keep, HandleShared
//	04,07  yes        any       any          no, below      any               Keep, Preserved
//	02     no         other     any          no, below      any               Keep, PolicyRetain
//	03     no         Delete    no           no, below      any               Keep, Static
//	08     no         Delete    yes          below          any               Keep, HoldsKeptVolumes
//	11     no         Delete    yes          no             never, lost       Keep, Unbound
//	11,12  no         Delete    yes          no             released          Await, Releasing
//	01,12  no         Delete    yes          no             bound             DeleteClaim, PolicyDelete
//
// A volume that is kept is marked: it gets the label and the policy Retain in one patch, before a claim or a pod of it
// is deleted. Whoever sets the policy back to Delete later does not reach it: the label keeps it.
package fate
