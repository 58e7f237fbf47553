// Package flagerrors explains a wrong command line in one sentence: what was given, and
// what to give instead. The errors of pflag quote its parser.
package flagerrors
