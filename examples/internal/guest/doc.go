// Package guest runs processes that outlive the controller that starts them, and finds them again.
//
// The state directory has a directory for each object, named by its UID:
//
//	record.json   what the controller has to know after kill -9: the name of the object, what the guest was asked
//	guest         locked by the guest as long as it lives; its content is the process ID
//	console.log   what the guest prints
//
// The lock proves that a guest lives or has ended, also after a crash at any moment and after a restart of the machine: the
// guest inherits the lock of the file from the controller when it is created, and only the kernel releases it. Whoever
// gets the lock knows that the guest has ended. Files that are missing prove nothing.
//
// No signal goes to a process whose ID was reused. The guest writes its ID itself. [Dir.Find] opens a pidfd for the ID
// and then sees that the guest still has the lock: the ID was the guest's when the pidfd was opened. Signals go through
// the pidfd. So guests need Linux 5.10.
package guest
