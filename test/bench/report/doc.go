// Package report turns a result into tables, aims and plots.
package report
