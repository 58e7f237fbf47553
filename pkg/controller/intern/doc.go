// Package intern makes the cached volumes and claims of a large cluster small: equal strings,
// maps and lists of different objects are stored once. Nothing is left out, an object equals
// the object that the API server sent, except for metadata.managedFields. So every reader and
// every write that depends on a cached object is as right as before.
//
// Objects that share parts must not be changed. That holds for every object of an informer.
//
// The tables are bounded: an entry that was not looked up for a while is dropped, and the
// objects that have its value keep it alive.
package intern
