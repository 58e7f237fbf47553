// Package schema says whether the API server refuses every write to a custom resource: it
// validates the removal of a finalizer as the API server does, against the present schema,
// with the ratcheting that tolerates errors in unchanged fields. Nothing is written.
//
// Below the root, an unchanged field may stay invalid. Refused are: errors at the root,
// which changes with its metadata, such as a missing required field, oneOf or a rule of the
// root; and rules that compare with oldSelf, anywhere.
package schema
