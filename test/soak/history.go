package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// history has the versions of every object, and every CSI call.
type history struct {
	mu    sync.Mutex
	lines map[string][]line
}

// line is one version of an object, or one call.
type line struct {
	time time.Time
	text string
}

func newHistory() *history { return &history{lines: map[string][]line{}} }

func (h *history) append(key string, at time.Time, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines[key] = append(h.lines[key], line{at, text})
}

// add records a version of an object, or its end.
func (h *history) add(kind string, object any, gone bool) {
	o, is := object.(metav1.Object)
	if !is {
		return
	}
	key, text := keyOf(kind, o), describe(object)
	if gone {
		text = "GONE, last " + text
	}
	h.append(key, time.Now(), text)
}

func keyOf(kind string, o metav1.Object) string {
	return strings.Trim(kind+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), " ")
}

// addCall records a CSI call by handle and by name.
func (h *history) addCall(call csimock.Call) {
	text := fmt.Sprintf("CSI call %d %s %s%s -> %s (%d ms)", call.Seq, call.Method, call.Name, call.Volume, call.Code,
		call.DurationMS)
	for _, about := range []string{call.Volume, call.Name} {
		if about != "" {
			h.append("disk "+about, call.Time, text)
		}
	}
}

// note records what the run did to the world.
func (h *history) note(text string) { h.append("world", time.Now(), text) }

// about returns the lines of all keys, sorted by time.
func (h *history) about(keys ...string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []line
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		for _, l := range h.lines[key] {
			all = append(all, line{l.time, key + ": " + l.text})
		}
	}
	if len(all) > 0 {
		all = append(all, h.worldSince(all)...)
	}
	slices.SortStableFunc(all, func(a, b line) int { return a.time.Compare(b.time) })
	var text strings.Builder
	for _, l := range all {
		fmt.Fprintf(&text, "    %s %s\n", l.time.UTC().Format("15:04:05.000"), l.text)
	}
	return text.String()
}

// worldSince returns what happened to the world in the time of the lines.
func (h *history) worldSince(lines []line) []line {
	first := slices.MinFunc(lines, func(a, b line) int { return a.time.Compare(b.time) }).time
	last := slices.MaxFunc(lines, func(a, b line) int { return a.time.Compare(b.time) }).time
	var all []line
	for _, l := range h.lines["world"] {
		if l.time.After(first) && l.time.Before(last.Add(time.Second)) {
			all = append(all, line{l.time, "-- " + l.text})
		}
	}
	return all
}

// describe returns a version of an object in one line.
func describe(object any) string {
	o, is := object.(metav1.Object)
	if !is {
		return fmt.Sprintf("%T", object)
	}
	parts := []string{"version " + o.GetResourceVersion(), "by " + writerOf(o)}
	switch o := object.(type) {
	case *v1.PersistentVolume:
		parts = append(parts, string(o.Status.Phase), string(o.Spec.PersistentVolumeReclaimPolicy), "handle "+handleOf(o))
		if ref := o.Spec.ClaimRef; ref != nil {
			parts = append(parts, "claim "+ref.Namespace+"/"+ref.Name+" "+string(ref.UID))
		}
	case *v1.PersistentVolumeClaim:
		parts = append(parts, string(o.Status.Phase), "uid "+string(o.UID), "volume "+o.Spec.VolumeName)
	}
	if o.GetDeletionTimestamp() != nil {
		parts = append(parts, "Terminating")
	}
	return strings.Join(append(parts, fmt.Sprint(o.GetFinalizers())), ", ")
}

// writerOf returns the programs that wrote in the last second in which anybody wrote.
func writerOf(o metav1.Object) string {
	writers, at := []string{}, time.Time{}
	for _, entry := range o.GetManagedFields() {
		switch {
		case entry.Time == nil || entry.Time.Time.Before(at):
			continue
		case entry.Time.After(at):
			writers, at = nil, entry.Time.Time
		}
		writers = append(writers, entry.Manager)
	}
	return strings.Join(writers, " or ")
}
