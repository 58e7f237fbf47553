package rig

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/bench/measure"
	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// pids returns the process IDs, with that of the load generator, which is this process.
func (p *Programs) pids() map[string]int {
	pids := map[string]int{measure.Load: os.Getpid()}
	for name, process := range p.all {
		pids[name] = process.PID()
	}
	return pids
}

// Sample reads the CPU time of all processes.
func (p *Programs) Sample() (measure.Sample, error) {
	sample := measure.Sample{Time: time.Now(), CPU: map[string]time.Duration{}}
	for name, pid := range p.pids() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return sample, fmt.Errorf("read CPU time of the %s: %w", name, err)
		}
		if sample.CPU[name], err = measure.ParseCPU(stat); err != nil {
			return sample, err
		}
	}
	return sample, nil
}

// PeakMemory reads the largest size of each process in bytes.
func (p *Programs) PeakMemory() (map[string]float64, error) {
	peaks := map[string]float64{}
	for name, pid := range p.pids() {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return nil, fmt.Errorf("read memory of the %s: %w", name, err)
		}
		peak, err := measure.ParsePeakMemory(status)
		if err != nil {
			return nil, err
		}
		peaks[name] = float64(peak)
	}
	maps.DeleteFunc(peaks, func(name string, _ float64) bool { return name == measure.Load })
	return peaks, nil
}

// Counters reads the metrics of the API server and the call log of the driver.
func (p *Programs) Counters(ctx context.Context, server rest.Interface) (measure.Counters, error) {
	text, err := server.Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").DoRaw(ctx)
	if err != nil {
		return measure.Counters{}, fmt.Errorf("read metrics of the API server: %w", err)
	}
	counters, err := measure.ParseMetrics(bytes.NewReader(text))
	if err != nil {
		return counters, err
	}
	counters.Calls = map[string]float64{}
	if p.Driver == nil {
		return counters, nil
	}
	calls, err := csimock.ReadCalls(p.Driver.CallLog)
	if err != nil {
		return counters, fmt.Errorf("read calls of the driver: %w", err)
	}
	for _, call := range calls {
		counters.Calls[call.Method]++
	}
	return counters, nil
}
