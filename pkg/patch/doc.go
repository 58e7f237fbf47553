// Package patch builds JSON patches (RFC 6902) that the API server applies only if the object
// is still as it was observed.
//
// Every patch starts with a test of the UID, so that an object that was deleted and created
// again under the same name is never changed. Further tests state what the decision was based
// on: other writes do not disturb the patch, and a write to a tested field makes the whole
// patch fail. [IsStale] reports such a failure; the caller observes again. Nothing here is
// specific to storage.
package patch
