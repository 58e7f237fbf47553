package measure

import (
	"slices"
	"time"
)

// Sample is the CPU time of each process at a time.
type Sample struct {
	Time time.Time
	CPU  map[string]time.Duration
}

// Window is what was read at the borders of a phase.
type Window struct {
	// Begin is before the first request, Done when the last volume has reached its state, End
	// after the last write of any program.
	Begin, Done, End Sample
	// Before and After are counters of the API server and of the driver.
	Before, After Counters
	// User are the requests of the load generator, and the watch bytes that it received.
	User Counters
}

// Phase is what a phase cost.
type Phase struct {
	Name string
	// Volumes is what the costs are divided by. Unit names them if they are no volumes.
	Volumes int
	Unit    string `json:",omitempty"`
	// Seconds is the time until the last volume has reached its state.
	Seconds float64
	// CPU is in milliseconds per volume by process, until the last write.
	CPU map[string]float64
	// Requests, WatchBytes and Calls are per volume, without those of the load generator.
	Requests   Requests
	WatchBytes map[string]float64
	Calls      map[string]float64
	// Latencies are in milliseconds, of single volumes where these are measured.
	Latencies []float64 `json:",omitempty"`
}

// Phase computes the cost of a phase that handled volumes.
func (w Window) Phase(name string, volumes int) Phase {
	counted := w.After.Minus(w.Before).Minus(w.User)
	return Phase{
		Name:       name,
		Volumes:    volumes,
		Seconds:    w.Done.Time.Sub(w.Begin.Time).Seconds(),
		CPU:        cpu(w.Begin, w.End, volumes),
		Requests:   share(counted.Requests, volumes),
		WatchBytes: share(counted.WatchBytes, volumes),
		Calls:      share(counted.Calls, volumes),
	}
}

// cpu returns the CPU milliseconds per volume of each process between two samples.
func cpu(from, to Sample, volumes int) map[string]float64 {
	spent := map[string]float64{}
	for process, total := range to.CPU {
		spent[process] = max(0, float64(total-from.CPU[process])/float64(time.Millisecond)/float64(volumes))
	}
	return spent
}

// Rate returns volumes per second.
func (p Phase) Rate() float64 {
	if p.Seconds == 0 {
		return 0
	}
	return float64(p.Volumes) / p.Seconds
}

// Median returns the median of the values, 0 for none.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile returns the value below which the share of the values is, 0 for none. It
// interpolates between neighbors.
func Quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	position := share * float64(len(sorted)-1)
	low := int(position)
	if low+1 == len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (position-float64(low))*(sorted[low+1]-sorted[low])
}
