package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// number is a line of the files that the tests follow.
type number struct{ N int }

func TestFollowYieldsNewLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	appendText(t, path, "{\"n\":1}\n{\"n\":2}\n")
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	var got []int
	for value, err := range follow[number](ctx, path) {
		if err != nil {
			t.Fatal(err)
		}
		switch got = append(got, value.N); value.N {
		case 2:
			appendText(t, path, "{\"n\":3}\n")
		case 3:
			cancel()
		}
	}
	if want := []int{1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("followed %v, want %v", got, want)
	}
}

func TestFollowWaitsForRestOfLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	appendText(t, path, "{\"n\":1}\n{\"n\":")
	for value, err := range follow[number](patient(t), path) {
		if err != nil {
			t.Fatal(err)
		}
		if value.N == 45 {
			return
		}
		appendText(t, path, "4")
		appendText(t, path, "5}\n")
	}
	t.Error("the second line never came")
}

func TestFollowWaitsForTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	go appendText(t, path, "{\"n\":7}\n")
	for value, err := range follow[number](patient(t), path) {
		if err != nil || value.N != 7 {
			t.Errorf("first line = %+v, %v, want 7", value, err)
		}
		return
	}
	t.Error("the file was never found")
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for value, err := range follow[number](ctx, filepath.Join(t.TempDir(), "missing")) {
		t.Errorf("yielded %+v, %v", value, err)
	}
}

func TestFollowStopsAtInvalidJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	appendText(t, path, "{\"n\":1}\nnonsense\n")
	var errs []error
	for _, err := range follow[number](patient(t), path) {
		errs = append(errs, err)
	}
	if len(errs) != 2 || errs[0] != nil || !strings.Contains(errs[1].Error(), "read line of "+path) {
		t.Errorf("errors = %v, want one for the second line", errs)
	}
}

func TestReadAllOmitsUnfinishedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	appendText(t, path, "{\"n\":1}\n{\"n\":2}\n{\"n\":")
	got, err := readAll[number](path)
	if want := []number{{1}, {2}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("readAll = %v, %v, want %v", got, err, want)
	}
}

func TestReadAllOfMissingFileFails(t *testing.T) {
	if _, err := readAll[number](filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("readAll: %v, want %v", err, os.ErrNotExist)
	}
}

// appendText adds text to the end of a file.
func appendText(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Error(err)
	}
}
