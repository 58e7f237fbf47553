// Package patch builds JSON patches (RFC 6902) that the API server applies only
// if the object is still the one its author saw.
//
// Every patch starts with a test of the object's UID, so that an object deleted
// and created again under the same name is never written. Further tests state
// exactly what the decision was based on: unrelated writes of other components
// do not disturb it, and related ones make the whole patch fail without effect.
// A failed test is an error for which [IsStale] is true; the caller observes
// again. Nothing here is specific to storage.
package patch
