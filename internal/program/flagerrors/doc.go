// Package flagerrors says in one sentence what is wrong with a command line: what was
// given, and what to give instead. The flag library speaks of parsers.
package flagerrors
