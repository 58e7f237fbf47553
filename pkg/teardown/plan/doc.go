// Package plan reads a cluster, and says what a teardown would delete and keep, who would do the work, and what refuses
// or should be known before. Mark alone writes: the label on what a person wants to keep.
//
//	plan.go      what is asked, and the document that answers
//	read.go      the lists, and the inventory that they fill
//	workers.go   which programs delete, and whether they live (#65)
//	refusals.go  what refuses: rows 33, 65, 66, 69, another ID, a name that does not exist
//	rights.go    which rights are missing, as rules
//	warnings.go  what goes although it is kept: with a machine (#09), or with the platform's own deletion
//	uncovered.go what a teardown does not delete
//	print.go     the text for a person
//	encode.go    the document as JSON or YAML
//	mark.go      the label on what is kept
//
// What could not be read is incomplete, never absent, and refuses (#66).
package plan
