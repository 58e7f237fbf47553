// Package report writes the page and the plots of a result. What stands outside of the two
// markers of the page is written by people, and stays.
package report
