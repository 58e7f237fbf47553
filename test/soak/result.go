package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// MinRate is how many volumes per second a run must finish to count.
const MinRate = 1.0

// Result is what a run found.
type Result struct {
	Seed uint64
	// Volumes is the number of finished volumes.
	Volumes int
	// Faults is the number of faults, Kills the number of SIGKILLs among them.
	Faults, Kills int
	// Leaked, Stuck and Lost name what went wrong.
	Leaked, Stuck, Lost []string
	// Broken are rules of the model that the recorded steps broke.
	Broken []string
	// Rate is the number of finished volumes per second while users worked and the API server
	// answered.
	Rate float64
}

// LastLine is the line that ends the output of a run.
func (r Result) LastLine() string {
	return fmt.Sprintf("soak: seed %d, %d volumes, %d faults, %d kills, leaked %d, stuck %d, lost %d",
		r.Seed, r.Volumes, r.Faults, r.Kills, len(r.Leaked), len(r.Stuck), len(r.Lost))
}

// Err returns nil if nothing leaked, was stuck or lost, and the run did enough work.
func (r Result) Err() error {
	if found := len(r.Leaked) + len(r.Stuck) + len(r.Lost); found > 0 {
		return fmt.Errorf("%d volumes or objects leaked, were stuck or lost", found)
	}
	if len(r.Broken) > 0 {
		return fmt.Errorf("%d rules of the model were broken", len(r.Broken))
	}
	if r.Rate < MinRate {
		return fmt.Errorf("the run finished %.2f volumes per second, and less than %.2f do not count", r.Rate, MinRate)
	}
	return nil
}

// counters counts by topic and kind.
type counters struct {
	mu    sync.Mutex
	start time.Time
	of    map[string]map[string]int
}

func newCounters() *counters {
	return &counters{start: time.Now(), of: map[string]map[string]int{}}
}

// The topics that are counted.
const (
	topicVolumes  = "volumes"
	topicTrees    = "owner trees"
	topicCSI      = "CSI faults"
	topicProxy    = "API faults"
	topicKills    = "kills"
	topicFreezes  = "freezes"
	topicRestarts = "restarts"
	topicEtcd     = "etcd"
	topicStale    = "stale reads"
	topicLeft     = "left at the end"
)

// topics are the topics in the order of the report.
var topics = []string{topicVolumes, topicTrees, topicCSI, topicProxy, topicStale, topicKills, topicFreezes, topicRestarts,
	topicEtcd, topicLeft}

// faultTopics are the topics that count as faults.
var faultTopics = []string{topicCSI, topicProxy, topicKills, topicFreezes, topicEtcd}

func (c *counters) add(topic, kind string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[topic] == nil {
		c.of[topic] = map[string]int{}
	}
	c.of[topic][kind] += n
}

// sum returns the sum over all kinds of the topics.
func (c *counters) sum(topics ...string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for _, topic := range topics {
		for _, n := range c.of[topic] {
			total += n
		}
	}
	return total
}

// print writes one line per topic.
func (c *counters) print(out io.Writer) {
	for _, topic := range topics {
		total := c.sum(topic)
		c.mu.Lock()
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(c.of[topic])) {
			parts = append(parts, fmt.Sprintf("%s %d", kind, c.of[topic][kind]))
		}
		c.mu.Unlock()
		fmt.Fprintf(out, "%-16s %6d  %s\n", topic, total, strings.Join(parts, ", "))
	}
}
