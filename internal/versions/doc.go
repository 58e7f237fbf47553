// Package versions records the end-to-end tests on each supported version of Kubernetes: it
// reads the output of "go test -json", keeps the counts of each package as JSON in
// docs/versions, and writes the table of versions into README.md and docs/versions.md.
//
// Tests say more about themselves by attributes (testing.T.Attr): [Unavailable] names what the
// version lacks, and [Scenario] the outcome of a scenario that also ran with upstream's loops.
package versions
