// Package provision turns a claim and its class into a CreateVolumeRequest, the
// driver's response into a PersistentVolume, and an error code into what is known
// of the volume. It calls nobody.
//
//	gRPC code                                             outcome
//	OK                                                    a volume exists
//	Canceled, DeadlineExceeded, Unavailable, Aborted      Unknown: the driver may still be at it
//	any other                                             Final: there is no volume
//
// What a claim or class asks for and this provisioner cannot serve is a [Refusal],
// never ignored.
package provision
