package load

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/bench/measure"
)

// files reads a file in /proc/PID of each process. The load generator is this process.
func (p *Programs) files(file string, take func(process string, text []byte) error) error {
	pids := map[string][]int{measure.Load: {os.Getpid()}}
	for name, processes := range p.all {
		for _, process := range processes {
			pids[name] = append(pids[name], process.PID())
		}
	}
	for name, all := range pids {
		for _, pid := range all {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err == nil {
				err = take(name, text)
			}
			if err != nil {
				return fmt.Errorf("read %s of the %s: %w", file, name, err)
			}
		}
	}
	return nil
}

// Sample reads the CPU time of all processes. Those with the same name are added.
func (p *Programs) Sample() (measure.Sample, error) {
	sample := measure.Sample{Time: time.Now(), CPU: map[string]time.Duration{}}
	err := p.files("stat", func(process string, text []byte) error {
		spent, err := measure.ParseCPU(text)
		sample.CPU[process] += spent
		return err
	})
	return sample, err
}

// PeakMemory reads the largest size of each process in bytes.
func (p *Programs) PeakMemory() (map[string]float64, error) {
	return p.memory(measure.ParsePeakMemory)
}

// Memory reads the resident size of each process in bytes.
func (p *Programs) Memory() (map[string]float64, error) { return p.memory(measure.ParseMemory) }

func (p *Programs) memory(parse func([]byte) (int, error)) (map[string]float64, error) {
	sizes := map[string]float64{}
	err := p.files("status", func(process string, text []byte) error {
		size, err := parse(text)
		if process != measure.Load {
			sizes[process] += float64(size)
		}
		return err
	})
	return sizes, err
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
