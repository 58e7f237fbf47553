// Package asciicast records the output of a program as a file that asciinema plays: asciicast v2,
// a header and one JSON array per line of output.
//
// A recording says nothing of the machine that made it: it has no environment and no date, and
// Anonymizer replaces directories, ports and the random parts of names.
package asciicast
