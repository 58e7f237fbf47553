package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// plotSpec says what a plot shows: a line for each side, a point for each scenario.
type plotSpec struct {
	file, title, xLabel, yLabel string
	// log makes the x axis logarithmic.
	log bool
	has func(plan.Scenario) bool
	// x is the position of a scenario, y the value of a turn.
	x func(plan.Scenario) float64
	y func(measure.Turn) float64
}

// plotSpecs returns all plots.
func plotSpecs() []plotSpec {
	size := func(s plan.Scenario) float64 { return float64(s.Size) }
	delay := func(s plan.Scenario) float64 { return float64(s.NetworkDelay) / float64(time.Millisecond) }
	pairs := func(s plan.Scenario) float64 { return float64(s.Background) }
	bound := func(t measure.Turn) float64 { phase, _ := t.Phase("bind"); return phase.Rate() }
	latency := func(t measure.Turn) float64 { phase, _ := t.Phase("bind"); return measure.Median(phase.Latencies) }
	memory := func(t measure.Turn) float64 {
		return (t.PeakMemory[measure.Loops] + t.PeakMemory[measure.Sidecar]) / 1e6
	}
	kind := func(kind plan.Kind) func(plan.Scenario) bool {
		return func(s plan.Scenario) bool { return s.Kind == kind }
	}
	sized := func(s plan.Scenario) bool { return s.Topic == plan.BySize }
	delayed := func(s plan.Scenario) bool { return s.Topic == plan.ByNetwork || s.Name == "storm-1000" }
	const inCluster = "pairs of volume and claim in the cluster"
	return []plotSpec{
		{"bound-by-size.svg", "Claims bound", "volumes", "per second", true, sized, size, bound},
		{"bound-by-delay.svg", "Claims bound", "network delay, ms each way", "per second", false, delayed, delay, bound},
		{"bound-by-pairs.svg", "Single claim bound", inCluster, "ms, median", true, kind(plan.Single), pairs, latency},
		{"memory-by-pairs.svg", "Peak memory of both programs after their start", inCluster, "MB", true, kind(plan.Start), pairs, memory},
	}
}

// Plots returns the SVG files of a result by name. A plot has a line between two positions: the sizes of
// a trial are all the same.
func Plots(result measure.Result) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, spec := range plotSpecs() {
		lines, longest := []any{}, plotter.XYs{}
		for _, side := range plan.AllSides {
			points := spec.points(result, side)
			if len(points) > 0 {
				lines = append(lines, string(side), points)
			}
			if len(points) > len(longest) {
				longest = points
			}
		}
		if len(longest) == 0 || longest[0].X == longest[len(longest)-1].X {
			continue
		}
		svg, err := spec.draw(lines, longest)
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", spec.file, err)
		}
		files[spec.file] = svg
	}
	return files, nil
}

// points returns the line of a side, from left to right.
func (p plotSpec) points(result measure.Result, side plan.Side) plotter.XYs {
	var points plotter.XYs
	for _, s := range result.Scenarios() {
		turn, found := measure.Typical(result.Of(s.Name, side))
		if !p.has(s) || !found {
			continue
		}
		if y := p.y(turn); y > 0 {
			points = append(points, plotter.XY{X: p.x(s), Y: y})
		}
	}
	slices.SortFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return points
}

// draw draws lines, each a name and its points. The x axis has a mark at each of the points of marks.
func (p plotSpec) draw(lines []any, marks plotter.XYs) ([]byte, error) {
	drawing := plot.New()
	drawing.Title.Text, drawing.X.Label.Text, drawing.Y.Label.Text = p.title, p.xLabel, p.yLabel
	if err := plotutil.AddLinePoints(drawing, lines...); err != nil {
		return nil, err
	}
	if p.log {
		drawing.X.Scale = plot.LogScale{}
	}
	drawing.Legend.Top = true
	drawing.Y.Min, drawing.Y.Max = 0, drawing.Y.Max*1.3 // the legend is above the lines
	drawing.Y.Tick.Marker = plot.TickerFunc(func(low,
		high float64) []plot.Tick {
		return labeled(plot.DefaultTicks{}.Ticks(low, high))
	})
	var ticks []plot.Tick
	for _, mark := range marks {
		ticks = append(ticks, plot.Tick{Value: mark.X})
	}
	drawing.X.Tick.Marker = plot.ConstantTicks(labeled(ticks))
	drawing.Add(plotter.NewGrid())
	svg, err := drawing.WriterTo(16*vg.Centimeter, 9*vg.Centimeter, "svg")
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	_, err = svg.WriteTo(&file)
	return file.Bytes(), err
}

// labeled gives each tick its number.
func labeled(ticks []plot.Tick) []plot.Tick {
	for i := range ticks {
		ticks[i].Label = strconv.FormatFloat(ticks[i].Value, 'g', 6, 64)
	}
	return ticks
}
