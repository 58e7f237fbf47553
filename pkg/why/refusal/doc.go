// Package refusal says why the API server refuses to read or write an object, from the
// answer of the API server, and which admission webhooks a write will call.
package refusal
