// Package provision turns a claim and its class into a CreateVolumeRequest, the
// driver's response into a PersistentVolume, and an error code into what is known
// of the volume. It calls nobody.
//
//	gRPC code                                             outcome
//	OK                                                    a volume exists
//	Canceled, DeadlineExceeded, Unavailable, Aborted      Unknown: the driver may still be at it
//	AlreadyExists                                         Unknown: there is one, made with another request
//	any other                                             Final: there is no volume
//
// [Decide] takes a claim from the wish for a volume to a PersistentVolume, or to a
// DeleteVolume if the wish goes away on the way. Whoever deletes the claim, kills
// this process or loses an answer, the claim stays until one of both has happened:
// it carries the finalizer Provisioning from before CreateVolume on.
//
//	volume                    claim wants it     claim is deleted, or bound
//	recorded as PV            Wait               LetGo
//	made, not recorded        Save               ReadBoth, then Discard
//	perhaps, or still made    Prepare, Hold,     the same, until the driver has told;
//	                          ReadClaim, Ask     then Discard
//	failed                    the same           the same, until it has failed twice more
//	not made                  the same           LetGo
//
// What a claim or class asks for and this provisioner cannot serve is a [Refusal],
// never ignored.
package provision
