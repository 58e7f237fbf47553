// Package balancer decides what a teardown does to a Service, an Ingress, a Gateway or a VolumeSnapshot: an object whose
// controller made something outside of the cluster. It reads no clock and no API object.
//
// "#" is the row of the design. The first case that fits counts.
//
//	#      object                        state                          decision
//	33     Service, Ingress, Gateway     its address leads to our API   Leave, LeadsToAPI
//	32,34  any                           label preserve                 Leave, Preserved
//	       any                           deleting                       Wait, Terminating
//	34     VolumeSnapshot                member of a group              Leave, GroupMember
//	34     VolumeSnapshot                content Retain                 Leave, PolicyRetain
//	34     VolumeSnapshot                content Delete, or none yet    Delete, PolicyDelete
//	32     Service of another type       finalizer                      Wait, TypeChanged
//	       Service of another type       no finalizer                   Leave, Internal
//	02     Service of type LoadBalancer  serves volumes                 Wait, ServesVolumes
//	30,31  Service of type LoadBalancer  any                            Delete, ServesBalancer
//	32     Ingress, Gateway              no finalizer                   Leave, NoFinalizer
//	30     Ingress, Gateway              finalizer                      Delete, ServesBalancer
//
// Whether the end of the object shows the end of what it made says [State.Evident].
package balancer
