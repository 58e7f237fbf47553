package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const output = `
killed: the provisioner is killed
  0.100  ours      creates a claim

STORY       MEASURED                  OURS   UPSTREAM
killed      volumes left in storage   0      3
namespace   volumes left in storage   0      0
pv-first    volumes per second        8.1    5.2, slow
`

func TestDifferencesOfARun(t *testing.T) {
	page, err := render("now, 2 CPUs", output)
	if err != nil {
		t.Fatal(err)
	}
	got, err := update("before\n"+beginMarker+"old"+endMarker+"\nafter", page)
	want := "before\n" + beginMarker + "\n\n" + `| story | measured | ours | upstream |
|---|---|---|---|
| killed | volumes left in storage | 0 | 3 |
| pv-first | volumes per second | 8.1 | 5.2, slow |

Run: now, 2 CPUs.

` + endMarker + "\nafter"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, difference:\n%s", err, diff)
	}
}

func TestIncompleteRunIsRefused(t *testing.T) {
	for name, text := range map[string]string{"no table": "killed: begins", "broken table": "x\nSTORY MEASURED\nkilled\n"} {
		if _, err := render("now", text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	page, err := render("now", output)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := update("no markers", page); err == nil || !strings.Contains(err.Error(), beginMarker) {
		t.Errorf("a page without markers: %v", err)
	}
}

func TestCircumstancesNameDateAndMachine(t *testing.T) {
	got := circumstances(time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC))
	if !strings.HasPrefix(got, "2026-01-02 03:04 UTC, ") || !strings.Contains(got, "CPUs") {
		t.Errorf("got %s", got)
	}
}
